"""Figures 1 and 6-12 and Tables 4 and 5 of paper 4 (HAT).

The delay g of Vicuna-7B is fitted to three numbers of Figure 1. With the assumption "calibrated" at
its default, three values are fitted to the TTFT and TBT of U-shape in Table 5, and nothing else is.
They are a factor on the printed bandwidths of each data set, the latency of the link, and a factor
on g of Vicuna-13B. Accept lengths are those of Table 4. `instances/prompt_chunking/workload.py`
lists the other values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from statistics import fmean
from typing import Any

import numpy as np

from papers.audit import follows
from papers.experiment import Curves, Experiment, Found, Point
from papers.ledger import paper
from specopt.api.solve import solve
from specopt.instances.prompt_chunking.paper_4 import paper_4
from specopt.instances.prompt_chunking.workload import ACCEPT_LENGTHS, FIGURE_1, paper_4_workload
from specopt.models.prompt_chunking.workload import PromptWorkload, Rounds, Scheme
from specopt.solvers.prompt_chunking.schemes import as_scheme
from specopt.solvers.prompt_chunking.simulate import PromptSimulation, simulate

DATASETS = ("specbench", "cnn-dm")
RATES = {
    "specbench": (4.0, 6.0, 9.0),
    "cnn-dm": (2.0, 4.0, 5.0),
}  # for CNN/DM the text prints only 4
PRINTED = (("cnn-dm", 4.0), ("specbench", 4.0), ("specbench", 6.0), ("specbench", 9.0))
STAGES = (1, 2, 4, 8)
BASELINES = ("U-shape", "U-Medusa", "U-Sarathi")
SCHEMES = (*BASELINES, "HAT")
STRATEGIES = ("none", "PC", "SD", "SD + PD", "SD + PC", "SD + PC + PD")
REQUESTS = 400
"""Requests per run, of which the first part is a warm-up."""

_ALONE = 0.01  # requests per second that never overlap
_SLOWEST = 60.0  # seconds; an upper limit of times per token
_TWO_THOUSAND = (
    3.20,
    0.28,
    0.09,
)  # seconds of communication, in the cloud and on the device (Figure 1(b))


@cache
def _scheme(dataset: str, name: str) -> Scheme:
    if name not in STRATEGIES:
        return as_scheme(paper_4_workload(dataset), name.lower())
    drafts, single = Rounds.threshold(ACCEPT_LENGTHS[dataset][1]), Rounds.one_by_one()
    return Scheme(
        name=name,
        chunking="equation-3" if "PC" in name else "whole",
        rounds=drafts if "SD" in name else single,
        parallel_drafting="PD" in name,
    )


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Simulations of the schemes and workloads at one point, each run when first needed.

    Parameters
    ----------
    point
        Assumptions of the experiment.
    seeds
        Seeds of the experiment.
    link
        Factor on the bandwidths by data set; see `calibrated`.
    cloud
        Factor on g by data set.
    latency
        Latency of the link.
    """

    point: Point
    seeds: Sequence[int]
    link: Mapping[str, float]
    cloud: Mapping[str, float]
    latency: float
    _done: dict[tuple[str, str, float, int], PromptSimulation] = field(default_factory=dict)

    def workload(self, dataset: str, rate: float, gpus: int = 4) -> PromptWorkload:
        """Return the requests of a data set."""
        made = paper_4_workload(
            dataset,
            requests_per_second=rate,
            pipeline_length=gpus,
            link_scale=self.link[dataset],
            cloud_scale=self.cloud[dataset],
            link_latency_seconds=self.latency,
            message_overhead_seconds=1e-3 * self.point["message_ms"],
        )
        return dataclasses.replace(
            made,
            draft_seconds=made.draft_seconds * self.point["draft_scale"],
            local_overhead_seconds=made.local_overhead_seconds * self.point["overhead_scale"],
        )

    def rate(self, dataset: str, gpus: int | None = None) -> float:
        """Return the rate where the paper prints none: in Tables 4-5 and Figure 8, or, with a
        number of GPUs, in Figures 9-12.
        """
        if gpus is None:
            return float(self.point[f"{dataset.replace('-', '_')}_rate"])
        return float(self.point["one_gpu_rate"]) * (3.0 if dataset == "specbench" else 1.0)

    def run(
        self, dataset: str, name: str, *, rate: float | None = None, gpus: int | None = None
    ) -> PromptSimulation:
        """Return the simulation of a scheme or strategy at a rate on a number of GPUs."""
        key = (dataset, name, self.rate(dataset, gpus) if rate is None else rate, gpus or 4)
        if key not in self._done:
            alone = key[2] == _ALONE
            self._done[key] = simulate(
                self.workload(dataset, *key[2:]),
                _scheme(dataset, name),
                replications=len(self.seeds),
                seed=self.seeds[0],
                requests=100 if alone else REQUESTS,
                warm_up_requests=0 if alone else 200,
            )
        return self._done[key]

    def ms(self, quantity: str, dataset: str, scheme: str, **at: Any) -> float:
        """Return a mean in ms: ``ttft``, ``tbt``, ``stage`` (computation per GPU and batch) or
        ``stage-deviation``.
        """
        run = self.run(dataset, scheme, **at)
        return (
            1e3
            * {
                "ttft": run.mean_ttft_seconds,
                "tbt": run.mean_tbt_seconds,
                "stage": run.stage_seconds,
                "stage-deviation": run.stage_seconds_std,
            }[quantity]
        )

    def lead(self, quantity: str, dataset: str, **at: Any) -> float:
        """Return the share by which the best other scheme exceeds HAT."""
        hat = self.ms(quantity, dataset, "HAT", **at)
        return min(self.ms(quantity, dataset, name, **at) for name in BASELINES) / hat - 1.0

    def below(self, quantity: str, dataset: str, scheme: str, **at: Any) -> float:
        """Return the reduction of HAT against a scheme, in percent."""
        return 100.0 * (
            1.0 - self.ms(quantity, dataset, "HAT", **at) / self.ms(quantity, dataset, scheme, **at)
        )


def bench(point: Point, seeds: Sequence[int], rounds: int = 12) -> Bench:
    """Return a bench; depending on the point, it is fitted to the TTFT and TBT of U-shape in Table
    5 by fixed-point steps.
    """
    link, cloud = dict.fromkeys(DATASETS, 1.0), {"specbench": 1.0, "cnn-dm": point["cloud_scale"]}
    printed = point["calibrated"] == "as printed"
    latency = 0.0 if printed else 0.005
    for dataset in () if printed else DATASETS:
        ttft, tbt = (
            1e-3 * paper("paper-4").statements[f"table-5.{dataset}.none.{q}"].printed
            for q in ("ttft", "tbt")
        )
        for _ in range(rounds):
            here = Bench(point=point, seeds=seeds, link=link, cloud=cloud, latency=latency)
            workload = here.workload(dataset, here.rate(dataset))
            run = here.run(dataset, "U-shape")
            # only the part of TTFT that the link takes is scaled
            up, down = workload.uplink_bytes_per_second, workload.downlink_bytes_per_second
            pace = sum(float(np.log(high / low) / (high - low)) for low, high in (up, down))
            seconds = (
                float(np.mean([one.prompt_tokens.mean() for one in run.runs]))
                * workload.bytes_per_token
                * pace
            )
            link[dataset] *= seconds / max(0.1 * seconds, seconds + ttft - run.mean_ttft_seconds)
            if dataset == "specbench":
                latency = max(0.0, latency + 0.5 * (tbt - run.mean_tbt_seconds))
            else:
                cloud[dataset] *= (tbt / run.mean_tbt_seconds) ** 0.7
    return Bench(point=point, seeds=seeds, link=link, cloud=cloud, latency=latency)


# ----------------------------------------------------------------- measures of statements


def _rise(found: Bench, dataset: str, scheme: str, rates: list[float]) -> float:
    low, high = (found.ms("tbt", dataset, scheme, rate=rate) for rate in rates)
    return 100.0 * (high / low - 1.0)


def _speedup(found: Bench, dataset: str, scheme: str) -> float:
    slow, fast = (found.ms("tbt", dataset, name, rate=_ALONE) for name in ("U-shape", scheme))
    return slow / fast


def _prefill(found: Bench, dataset: str, scheme: str, gpus: int, limit_ms: float) -> float:
    """Return the percentage of requests within the limit, which applies to every 128 tokens of a
    prompt.
    """
    limit = 1e-3 * limit_ms * (1.0 + 1e-12)
    runs = found.run(dataset, scheme, gpus=gpus).runs
    within = [
        np.mean(run.ttft_seconds / np.ceil(run.prompt_tokens / 128.0) <= limit) for run in runs
    ]
    return 100.0 * float(np.mean(within))


def _decode(found: Bench, dataset: str, scheme: str, gpus: int, share: float) -> float:
    """Return the milliseconds per 10 tokens that a share of the requests meets."""
    runs = found.run(dataset, scheme, gpus=gpus).runs
    seconds = fmean(
        np.quantile(10.0 * run.tbt_seconds, share, method="inverted_cdf") for run in runs
    )
    return 1e3 * min(_SLOWEST, seconds)


_MEASURES: Mapping[str, Callable[..., float]] = {
    **{
        name: partial(Bench.ms, quantity=name)
        for name in ("ttft", "tbt", "stage", "stage-deviation")
    },
    **{f"{name}-below": partial(Bench.below, quantity=name) for name in ("ttft", "tbt")},
    "tbt-rise": _rise,
    "prefill": _prefill,
    "decode": _decode,
    "speedup": _speedup,
}


# ---------------------------------------------------------------------------- orders and trends


def _orders(found: Bench) -> dict[str, float]:
    values = {}
    for number, dataset in zip((6, 7), DATASETS, strict=True):
        for quantity in ("ttft", "tbt"):
            values[f"figure-{number}.{quantity}"] = min(
                found.lead(quantity, dataset, rate=rate) for rate in RATES[dataset]
            )
    for number, dataset in zip((11, 12), DATASETS, strict=True):
        both = [(quantity, gpus) for quantity in ("ttft", "tbt") for gpus in STAGES]
        values[f"figure-{number}.order"] = min(
            found.lead(quantity, dataset, gpus=gpus) for quantity, gpus in both
        )
        values[f"figure-{number}.trend"] = min(
            1.0
            - found.ms(quantity, dataset, name, gpus=2 * gpus)
            / found.ms(quantity, dataset, name, gpus=gpus)
            for name in SCHEMES
            for quantity, gpus in both
            if gpus < STAGES[-1]
        )
    limits = {"specbench": (350.0, 0.5), "cnn-dm": (300.0, 0.9)}
    prefill = {
        (d, name): _prefill(found, d, name, 1, limits[d][0]) for d in DATASETS for name in SCHEMES
    }
    decode = {
        (d, name): _decode(found, d, name, 1, limits[d][1]) for d in DATASETS for name in SCHEMES
    }
    speed = {(d, name): _speedup(found, d, name) for d in DATASETS for name in ("U-Medusa", "HAT")}
    ttft, tbt = (
        {(d, name): found.ms(q, d, name) for d in DATASETS for name in STRATEGIES}
        for q in ("ttft", "tbt")
    )
    steps = (("none", "SD"), ("SD", "SD + PD"), ("PC", "SD + PC"), ("SD + PC", STRATEGIES[-1]))
    return values | {
        "figure-9.prefill": min(
            prefill[d, "HAT"] - max(prefill[d, name] for name in BASELINES) for d in DATASETS
        ),
        "figure-9.decode": min(
            min(decode[d, name] for name in BASELINES) / decode[d, "HAT"] - 1.0 for d in DATASETS
        ),
        "table-4.order": min(
            min(speed[d, "HAT"] / speed[d, "U-Medusa"], speed[d, "U-Medusa"]) - 1.0
            for d in DATASETS
        ),
        "table-5.chunking": min(
            1.0 - ttft[d, chunked] / ttft[d, whole]
            for d in DATASETS
            for whole, chunked in (("none", "PC"), ("SD", "SD + PC"), ("SD + PD", STRATEGIES[-1]))
        ),
        "table-5.speculation": min(
            1.0 - tbt[d, more] / tbt[d, less] for d in DATASETS for less, more in steps
        ),
        "table-5.all": min(
            min(tbt[d, name] for name in STRATEGIES) / tbt[d, STRATEGIES[-1]] - 1.0 + 1e-12
            for d in DATASETS
        ),
    }


def _marks(key: str, **given: str) -> dict[str, list[tuple[float, float]]]:
    """Return the printed values of each scheme by rate or number of GPUs."""
    marks: dict[str, list[tuple[float, float]]] = {}
    for said in paper("paper-4").of("hat"):
        if key in said.given and given.items() <= said.given.items():
            marks.setdefault(said.given["scheme"], []).append((said.given[key], said.printed))
    return marks


def hat(point: Point, seeds: Sequence[int]) -> Found:
    """Simulate all schemes and strategies at all rates and numbers of GPUs."""
    found, values = bench(point, seeds), {}
    for said in paper("paper-4").of("hat"):
        if said.given:
            given = {key: value for key, value in said.given.items() if key != "measure"}
            values[said.id] = _MEASURES[said.given["measure"]](found, **given)
    covered = PRINTED if point["abstract_of"] == "all printed rates" else PRINTED[:1]
    for quantity in ("ttft", "tbt"):
        each = [
            found.below(quantity, dataset, name, rate=rate)
            for dataset, rate in covered
            for name in BASELINES
        ]
        values |= {f"abstract.{quantity}": min(each), f"abstract.{quantity}-most": max(each)}
    curves = {}
    for number, dataset in enumerate(DATASETS):
        for figure, label, at, key in (
            (6, "requests per second", RATES[dataset], "rate"),
            (11, "GPUs in the pipeline", STAGES, "gpus"),
        ):
            for quantity in ("ttft", "tbt"):
                lines = {
                    name: [found.ms(quantity, dataset, name, **{key: x}) for x in at]
                    for name in SCHEMES
                }
                marks = _marks(measure=quantity, dataset=dataset, key=key)
                curves[f"figure-{figure + number} {quantity}"] = Curves(
                    label, f"{quantity.upper()}, ms", at, lines, marks
                )
    return Found(values | _orders(found), curves)


def printed(_: Point, __: Sequence[int]) -> Found:
    """Return the numbers that follow from other printed numbers, and from g for Figure 1."""
    said = {name: one.printed for name, one in paper("paper-4").statements.items()}
    g, (communication, cloud, device) = FIGURE_1, _TWO_THOUSAND
    a_token = (communication + device) / 2000

    def cut(new: str, old: str, printed: float) -> float:
        """Return the reduction of a printed time against another one, in percent; both have one
        decimal.
        """
        low, high = ((said[new] + half) / (said[old] - half) for half in (-0.05, 0.05))
        return follows(printed, 100.0 * (1.0 - high), 100.0 * (1.0 - low), digits=1)

    def chunks(size: int) -> tuple[float, float]:
        """Return the delay of 64 steps with nine other requests and a prompt of 2000 tokens in
        chunks, and the delay of the steps with chunks.
        """
        steps = -(-2000 // size)
        first = sum(g.at(9 + min(size, 2000 - size * i)) for i in range(steps))
        return first + (64 - steps) * g.at(10), first

    sizes = np.array([chunks(size) for size in (32, 64, 128, 256, 512, 1000)])
    sarathi = 100.0 * (1.0 - said["figure-6a.hat"] / said["figure-6a.u-sarathi"])
    return Found(
        {
            "figure-1d.trend": 1e3 * float((np.diff(sizes, axis=0) * (1.0, -1.0)).min()),
            "figure-1d.ttft": chunks(32)[1] / chunks(2000)[1],
            "figure-1a.communication": (
                100.0 * 128 * communication / 2000 / (128 * a_token + g.at(128))
            ),
            "figure-1b.ttft": follows(
                said["figure-1b.ttft"], communication + cloud + device, digits=2
            ),
            "figure-1b.bandwidth": 2000 * 8192 * (1.0 + 7.5 / 12.5) / communication / 1e6,
            "figure-1b.parts": follows(
                89.6, 100.0 * 3.195 / 3.575, 100.0 * 3.205 / 3.565, digits=1
            ),
            "abstract.arithmetic": sarathi,
            "abstract.arithmetic-tbt": said["figure-6b.u-medusa"],
            "figure-12.arithmetic": said["figure-7b.u-medusa"],
            "table-5.arithmetic.sd": cut(
                "table-5.specbench.sd.tbt", "table-5.specbench.none.tbt", 26.8
            ),
            "table-5.arithmetic.ttft": cut(
                "table-5.specbench.sd+pc.ttft", "table-5.specbench.none.ttft", 41.4
            ),
            "table-5.arithmetic.tbt": cut(
                "table-5.specbench.sd+pc.tbt", "table-5.specbench.none.tbt", 41.5
            ),
            "table-5.arithmetic.pd": cut(
                "table-5.specbench.sd+pc+pd.tbt", "table-5.specbench.none.tbt", 49.5
            ),
            "table-5.arithmetic.cnn-dm": cut(
                "table-5.cnn-dm.sd+pc.tbt", "table-5.cnn-dm.none.tbt", 61.5
            ),
        }
    )


def equation_3(point: Point, _: Sequence[int]) -> Found:
    """Compare the chunks of Eq. 3 with the best ones, on Vicuna-7B throughout."""
    problem = paper_4(
        prompt_tokens=point["prompt"],
        message_milliseconds=point["message_ms"],
        pipeline_length=point["stages"],
        model="vicuna-7b",  # Figure 1 shows the delay g of this model
    )
    ours, best = (solve(problem, method).objective for method in ("equation-3", "exact"))
    assert ours is not None and best is not None
    return Found({"eq-3": ours / best})


def upload(point: Point, _: Sequence[int]) -> Found:
    """Return the upload time of a mean prompt of CNN/DM at the highest printed rate."""
    return Found({"figure-7.possible": 1036.6 * 10240 / (10 * point["megabyte"]) * 1e3})


EXPERIMENTS: dict[str, Experiment] = {
    "printed": printed,
    "eq-3": equation_3,
    "figure-7-upload": upload,
    "hat": hat,
}
