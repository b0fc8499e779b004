"""Figures 1, 4, 7, 8 and Tables 1-3 of paper 2 (WISP) in simulation; `paper_2_audits` recomputes
its other tables.

The logs of the paper are not public. Logs of the laboratory's real pair are used for Figures 2-3
and Tables 4-6, and for Tables 2-3 with the recorded acceptance and predictor.

WISP is Algorithm 1 with late requests as fillers, a prefix cache, and drafting that stops at the
first predicted rejection with the error rates of Table 10. SLED serves first come, first served,
without cache and controller. Centralised serving decodes on the verifier alone. FCFS in Table 1 and
Figure 7 is either SLED, or uses WISP's cache and windows. Violations are counted per response:
counted per iteration, even an idle server has 26 %. In Table 2 the cache has the memory that the
weights leave on the GPU; elsewhere it is ample.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from papers.experiment import Curves, Experiment, Found, Point
from papers.laboratory import lines, real
from papers.ledger import paper
from papers.paper_2_audits import SECTION_4_4, audits
from specopt.instances.verification_batch.workload import CLASS_SPEEDS, TABLE_12, mixed_classes
from specopt.models.fields import Floats
from specopt.models.pass_time import VerificationTime
from specopt.models.verification_batch.workload import DraftPredictor, VerificationWorkload
from specopt.solvers.verification_batch.policies import PolicyName
from specopt.solvers.verification_batch.simulate import capacity, run_once

DEVICES = tuple(range(50, 651, 50))
SATURATED = 800
SECONDS = 60.0
"""Simulated seconds per run."""

_KV_BYTES_14B = 163_840.0  # Qwen3-14B: 40 layers, 8 heads of 128 for keys and values, 2 bytes

_SYSTEMS: dict[str, tuple[PolicyName, dict[str, Any]]] = {
    "SLED": ("fcfs", {"prefix_cache": False, "predictor": None}),
    "centralised": ("fcfs", {}),
    "WISP": ("algorithm-1-drop", {}),
}


def _workload(
    point: Point, class_speeds: Sequence[float] = CLASS_SPEEDS, **changes: Any
) -> VerificationWorkload:
    """Return the workload of WISP at a point, with changes."""
    rates, predictor = _recorded(point) if "part" in point else _printed(point)
    changes = {"predictor": predictor if point["controller"] == "on" else None} | changes
    gigabytes = point.get("cache_gb_14b", point.get("cache_gb"))
    base = mixed_classes(
        prompt_median_tokens=point["prompt_median"],
        class_speeds=class_speeds,
        estimator=_estimator(point),
    )
    return dataclasses.replace(
        base,
        acceptance_rates=rates,
        response_median_tokens=point["response_median"],
        draft_tokens_per_second=point["drafting"],
        uplink_seconds=1e-3 * point["network_ms"],
        downlink_seconds=1e-3 * point["network_ms"],
        think_seconds=point["think_seconds"],
        guard_seconds=1e-3 * point.get("guard_ms", 5.0),
        time_noise=point.get("time_noise", 0.0),
        kv_bytes_per_token=_KV_BYTES_14B if "scale_14b" in point else base.kv_bytes_per_token,
        cache_memory_bytes=None if gigabytes is None else 1e9 * gigabytes,
        **changes,
    )


def _estimator(point: Point) -> VerificationTime:
    """Return the estimator of the time of a batch, scaled for a smaller verify model."""
    of = SECTION_4_4 if point["estimator"] == "Sec. 4.4" else TABLE_12
    scale = point.get("scale_14b", 1.0)
    return of.scaled(scale, scale)


def _printed(point: Point) -> tuple[Floats, DraftPredictor]:
    """Return the acceptance by position, and a predictor with the error rates of Table 10."""
    predictor = DraftPredictor(
        false_accept=0.425,
        false_reject=0.1989,
        false_accept_after=point.get("goes_on_after", 0.425),
    )
    return np.full(point["window"], point["acceptance"]), predictor


def _recorded(point: Point) -> tuple[Floats, DraftPredictor]:
    """Return the acceptance by position and the predictor of the real pair on held-out prompts."""
    given = _rejections(point)
    predictor = DraftPredictor(
        false_accept=1.0 - given["specificity"],
        false_reject=1.0 - given["recall"],
        false_accept_after=given["goes_on_after"],
    )
    return np.array(given["by_position"][: point["recorded_window"]]), predictor


def _rejections(point: Point) -> Mapping[str, Any]:
    found = lines(
        "rejections", **{name: point[name] for name in ("temperature", "predictor", "part")}
    )
    return found[0]


def printed(_: Point, __: Sequence[int]) -> Found:
    """Return the numbers that follow from other printed numbers."""
    return Found(dict(audits()))


def figure_1(point: Point, seeds: Sequence[int]) -> Found:
    """Simulate one device with windows of 1 to 16 at four acceptance rates."""
    windows, rates = (1, 2, 4, 6, 8, 12, 16), (0.55, 0.65, 0.73, 0.85)
    fixed = {
        "controller": "off",
        "estimator": "Table 12",
        "drafting": 50.0,
        "think_seconds": 2.0,
        **point,
    }
    waste, speed = np.empty((2, len(rates), len(windows)))
    for i, rate in enumerate(rates):
        for j, window in enumerate(windows):
            workload = _workload({**fixed, "acceptance": rate, "window": window})
            runs = [
                run_once(workload, "fcfs", devices=1, seed=seed, seconds=1500.0) for seed in seeds
            ]
            waste[i, j] = np.mean([run.wasted_share for run in runs])
            speed[i, j] = np.mean(
                [run.class_mean_speed[run.class_responses > 0].mean() for run in runs]
            )
    each = [np.corrcoef(a, b)[0, 1] for a, b in zip(waste, speed, strict=True)]
    values = {
        "figure-1": float(max(each)),
        "figure-1.all": float(np.corrcoef(waste.ravel(), speed.ravel())[0, 1]),
    }
    lines = {f"acceptance {rate:g}": speed[i].tolist() for i, rate in enumerate(rates)}
    return Found(values, {"figure-1": Curves("window K", "tokens/s of one device", windows, lines)})


def _rates(
    point: Point, fcfs: str, counts: Sequence[int], seeds: Sequence[int]
) -> dict[str, Floats]:
    """Return the violation rates of WISP and of FCFS by number of devices and class."""
    found = {}
    for name, system in {
        "WISP": "WISP",
        "FCFS": "SLED" if fcfs == "SLED" else "centralised",
    }.items():
        policy, changes = _SYSTEMS[system]
        workload = _workload(point, **changes)
        rows = []
        for count in counts:
            runs = [
                run_once(workload, policy, devices=count, seed=seed, seconds=SECONDS)
                for seed in seeds
            ]
            late = sum(run.class_violations for run in runs)
            rows.append(late / np.maximum(1, sum(run.class_responses for run in runs)))
        found[name] = np.array(rows)
    return found


def table_1(point: Point, seeds: Sequence[int]) -> Found:
    """Violation rates by class at one load."""
    devices = (point["devices_table_1"],)
    found = {
        name: rates[0]
        for name, rates in _rates(point, point["fcfs_table_1"], devices, seeds).items()
    }
    values = {
        f"table-1.{name.lower()}.{speed:g}": float(rate)
        for name, line in found.items()
        for speed, rate in zip(CLASS_SPEEDS, line, strict=True)
    }
    values["table-1.order"] = float((found["FCFS"] - found["WISP"])[1:].min())
    values["table-1.trend"] = min(float(np.diff(line).min()) for line in found.values())
    return Found(values)


def table_2(point: Point, seeds: Sequence[int]) -> Found:
    """Capacity of each system by class, in devices."""
    devices = {
        name: np.array(
            [
                capacity(
                    _workload(point, (speed,), **changes),
                    policy,
                    violation_rate=point["epsilon"],
                    seeds=seeds[:2],
                    seconds=SECONDS,
                    resolution=0.02,
                    centralised=name == "centralised",
                ).mean
                for speed in CLASS_SPEEDS
            ]
        )
        for name, (policy, changes) in _SYSTEMS.items()
    }
    over = {
        baseline.lower(): devices["WISP"] / np.maximum(devices[baseline], 0.5)
        for baseline in ("centralised", "SLED")
    }  # a system that carries no device counts as half a device
    values = {
        f"table-2.{name.lower()}.{speed:g}": float(count)
        for name, line in devices.items()
        for speed, count in zip(CLASS_SPEEDS, line, strict=True)
    }
    for baseline, line in over.items():
        values |= {
            f"table-2.over-{baseline}.{speed:g}": float(ratio)
            for speed, ratio in zip(CLASS_SPEEDS, line, strict=True)
        }
    centralised_over_sled = devices["centralised"] / np.maximum(devices["SLED"], 0.5)
    values |= {
        "table-2.order": float(min(over["centralised"].min(), centralised_over_sled.min())) - 1.0,
        "table-2.trend": min(float(line[-1] - line[0]) for line in over.values()),
        "abstract.capacity": float(over["centralised"].max()),
        "abstract.capacity-sled": float(over["sled"].max()),
    }
    lines = {name: line.tolist() for name, line in devices.items()}
    curves = Curves("class, tokens/s", "devices carried", CLASS_SPEEDS, lines, _devices("table-2"))
    return Found(values, {"table-2": curves})


def _devices(table: str) -> dict[str, list[tuple[float, float]]]:
    """Return the printed capacities of each system."""
    said = paper("paper-2").statements
    return {
        name: [(c, said[f"{table}.{name.lower()}.{c:g}"].printed) for c in CLASS_SPEEDS]
        for name in _SYSTEMS
    }


def table_2_14b(point: Point, seeds: Sequence[int]) -> Found:
    """Capacity of each system with Qwen3-14B."""
    found = table_2(point, seeds)
    values = {
        key.replace(".", ".14b.", 1): value
        for key, value in found.values.items()
        if key.startswith("table-2.")
    }
    curves = dataclasses.replace(found.curves["table-2"], printed=_devices("table-2.14b"))
    return Found(values, {"table-2 Qwen3-14B": curves})


def table_3(point: Point, seeds: Sequence[int]) -> Found:
    """Goodput of each system at saturation."""
    found = {
        name: float(
            np.mean(
                [
                    run_once(
                        _workload(point, **changes),
                        policy,
                        devices=SATURATED,
                        seed=seed,
                        seconds=SECONDS,
                        centralised=name == "centralised",
                    ).goodput
                    for seed in seeds
                ]
            )
        )
        for name, (policy, changes) in _SYSTEMS.items()
    }
    wisp, centralised, sled = (max(found[name], 1e-9) for name in ("WISP", "centralised", "SLED"))
    return Found(
        {
            "table-3.wisp": wisp,
            "table-3.centralised": centralised,
            "table-3.sled": sled,
            "table-3.order": min(wisp / centralised, centralised / sled) - 1.0,
            "abstract.goodput": wisp / centralised,
            "abstract.goodput-sled": wisp / sled,
        }
    )


def figure_7(point: Point, seeds: Sequence[int]) -> Found:
    """Violation rates by class against the number of devices."""
    found = _rates(point, point["fcfs"], DEVICES, seeds[:2])
    wisp, fcfs = found["WISP"], found["FCFS"]
    knees = {name: _knees(rates) for name, rates in found.items()}
    shifts = (knees["WISP"] - knees["FCFS"])[knees["FCFS"] < DEVICES[-1]]
    avoided = (fcfs - wisp).mean(axis=0)
    gains = {
        "violations avoided": avoided,
        "share of violations avoided": avoided / np.maximum(1e-9, fcfs.mean(axis=0)),
        "devices at the knee": knees["WISP"] / np.maximum(0.5 * DEVICES[0], knees["FCFS"]),
    }[point["gain"]]
    values = {
        "figure-7.low": max(float(rates[0].max()) for rates in found.values()),
        "figure-7.rise": min(float(rates[-1].max()) for rates in found.values()),
        "figure-7.knee": float(shifts.min(initial=DEVICES[-1])),
        "figure-7.order": float((wisp - fcfs).max()),
        "figure-7.fast": float(gains[2:].max() - gains[:2].max()),
    }
    return Found(
        values,
        {
            "figure-7": Curves(
                "devices",
                "responses below their speed",
                DEVICES,
                {
                    f"{name}, {speed:g} tokens/s": rates[:, c].tolist()
                    for name, rates in found.items()
                    for c, speed in enumerate(CLASS_SPEEDS)
                },
            )
        },
    )


def _knees(rates: Floats) -> Floats:
    """Return the maximum number of devices by class up to which at most 1 % of the responses are
    late (Eq. 20).
    """
    return np.asarray(DEVICES[0] * np.logical_and.accumulate(rates <= 0.01).sum(axis=0))


def figure_8(point: Point, seeds: Sequence[int]) -> Found:
    """Share of late verifications that coincide with a spike, at a load relative to the capacity
    of WISP.
    """
    workload = _workload(point)
    carried = capacity(
        workload, "algorithm-1-drop", seeds=seeds[:1], seconds=SECONDS, resolution=0.02
    ).mean
    devices = max(1, round(point["load"] * carried))
    runs = [
        run_once(workload, "algorithm-1-drop", devices=devices, seed=seed, seconds=SECONDS)
        for seed in seeds
    ]
    late = max(1, sum(int(run.iteration_violations.sum()) for run in runs))
    spikes = sum(int(run.compute_dominant.sum()) for run in runs)
    return Found({"figure-8.spikes": spikes / late})


def statistics(point: Point, _: Sequence[int]) -> Found:
    """Correlation of acceptance with statistics of the real pair's draft distributions."""
    given = lines("statistics", temperature=point["temperature"], task=point["task"])[0]
    falling = ("draft_entropy", "deviation")
    names = {
        "draft_probability": "confidence",
        "draft_entropy": "entropy",
        "margin": "margin",
        "deviation": "dispersion",
    }
    signed = {name: [-one if name in falling else one for one in given[name]] for name in names}
    return Found(
        {f"figure-2.{names[name]}": ranks for name, (ranks, _) in signed.items()}
        | {"figure-3": min(each for _, each in signed.values())}
    )


def table_4(point: Point, _: Sequence[int]) -> Found:
    """Quality of a predictor on recorded drafts of the real pair."""
    given = _rejections(point)
    rates = {name: given[name] for name in ("accuracy", "area", "recall", "specificity")}
    rates |= {
        "false-accept": 1.0 - given["specificity"],
        "balanced": 0.5 * (given["recall"] + given["specificity"]),
    }
    off, on = (given[name][point["recorded_window"] - 1] for name in ("off", "on"))
    return Found(
        {f"table-4.{name}": value for name, value in rates.items()}
        | {"table-5.gain": 100.0 * (on / off - 1.0)}
    )


def table_6(point: Point, seeds: Sequence[int]) -> Found:
    """Goodput of a few devices with and without the drafting controller."""
    counts = (2, 4, 8, 16)
    goodput = {
        controller: np.array(
            [
                np.mean(
                    [
                        run_once(
                            _workload({**point, "controller": controller}),
                            "algorithm-1-drop",
                            devices=count,
                            seed=seed,
                            seconds=SECONDS,
                        ).goodput
                        for seed in seeds
                    ]
                )
                for count in counts
            ]
        )
        for controller in ("on", "off")
    }
    gains = 100.0 * (goodput["on"] / np.maximum(goodput["off"], 1e-9) - 1.0)
    values = {
        "table-6.least": float(gains.min()),
        "table-6.most": float(gains.max()),
        "table-6.trend": float(np.diff(gains).min()),
    }
    found = {name: line.tolist() for name, line in goodput.items()}
    return Found(
        values, {"table-6": Curves("devices", "tokens/s with the controller", counts, found)}
    )


EXPERIMENTS: dict[str, Experiment] = {
    "printed": printed,
    "figure-1": figure_1,
    "table-1": table_1,
    "table-2": table_2,
    "table-2-14b": table_2_14b,
    "table-3": table_3,
    "figure-7": figure_7,
    "figure-8": figure_8,
    "figure-2-real": real(statistics),
    "table-4-real": real(table_4),
    "table-6-real": real(table_6),
    "table-2-real": real(table_2),
    "table-3-real": real(table_3),
}
