"""Figures 6-9 of paper 1, and the numbers that its equations give.

The axes of the figures are not in the text; the points are those that it names, and round ones between them. All
schemes plan with O_max, as Sec. III-B does. Every point averages over the same draws of users and tasks, except in
Figure 9, where medians are taken: under Rayleigh fading the latency of a draw has no mean.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from specopt.api.solve import solve
from specopt.instances.serving_latency.paper_1 import LLAMA_7B, paper_1
from specopt.models.fields import Floats
from specopt.models.serving_latency import ServingLatencyProblem
from specopt.models.uplink import spectral_efficiency
from specopt.reproductions.experiment import Curves, Experiment, Found, Point
from specopt.solvers.method import Method
from specopt.solvers.serving_latency.fixed_length import FixedLength
from specopt.solvers.serving_latency.heuristic_batching import HeuristicBatching
from specopt.solvers.serving_latency.static_batching import StaticBatching

PAIRS = ("68M-7B", "1.1B-7B", "1.1B-13B")
ALPHAS = (0.5, 0.6, 0.7, 0.8, 0.9)
BANDS = (5.0, 10.0, 15.0, 20.0, 25.0)
AXES = {
    "a": ("tasks K", "tasks", (50, 60, 70, 80, 90, 100)),
    "b": ("maximum input length", "max_input", (256, 512, 1024, 1792)),
    "c": ("maximum output length", "max_output", (512, 1024, 1792, 2048)),
}
DRAWS = 3
"""Per seed, in Figure 9."""

_AMPLE = 999.0  # GB from which on the memory of the verify model is not limited


def _solved(problem: ServingLatencyProblem, method: Method | str) -> float:
    result = solve(problem, method)
    if result.termination == "interrupted":
        raise KeyboardInterrupt
    assert result.objective is not None, "single tasks fit the memory in every setting"
    return result.objective


def _scheme(name: str, problem: ServingLatencyProblem, point: Point) -> float:
    """Return the latency of a scheme of Sec. IV."""
    literal = point.get("heuristic_start") == "two batches"
    heuristic = HeuristicBatching(first_size=(problem.tasks + 1) // 2) if literal else HeuristicBatching()
    if name == "no pipeline":
        sequential = dataclasses.replace(problem, mechanism="sequential")
        plan = solve(problem, "algorithm-1").plan
        assert plan is not None
        same = sequential.evaluate(plan).objective
        return same if point["sequential_batches"] == "same" else min(same, _solved(sequential, "max-batching"))
    if name == "autoregressive":
        return _solved(dataclasses.replace(problem, mechanism="autoregressive"), heuristic)
    methods: dict[str, Callable[[], Method | str]] = {
        "proposed": lambda: "algorithm-1",
        "no batching": lambda: "no-batching",
        "fixed length": lambda: FixedLength(length=7),
        "static batching": lambda: StaticBatching(size=point["static_size"]),
        "max batching": lambda: "max-batching",
        "heuristic batching": lambda: heuristic,
    }
    return _solved(problem, methods[name]())


def _lines(
    names: Iterable[str], cells: Sequence[Mapping[str, object]], point: Point, seeds: Sequence[int]
) -> dict[str, Floats]:
    """Return the mean latency of schemes, by name, at the points of an axis."""
    memory = point["verify_memory_gb"] * 1e9 if point["verify_memory_gb"] < _AMPLE else None
    problems = [
        [dataclasses.replace(paper_1(**cell, seed=seed), verify_memory_bytes=memory) for seed in seeds]  # type: ignore[arg-type]
        for cell in cells
    ]
    return {
        name: np.array([np.mean([_scheme(name, problem, point) for problem in draws]) for draws in problems])
        for name in names
    }


def _least_saving(lines: Mapping[str, Floats], rivals: Iterable[str]) -> float:
    return float(min((1.0 - lines["proposed"] / lines[rival]).min() for rival in rivals))


def _curves(x: str, at: Sequence[float], lines: Mapping[str, Floats]) -> Curves:
    return Curves(x, "latency, s", at, {name: line.tolist() for name, line in lines.items()})


def printed(_: Point, __: Sequence[int]) -> Found:
    """Return what the printed numbers give without any run."""
    return Found({
        "sec-2.weights": LLAMA_7B.parameter_bytes / 1e9,
        "sec-2.fronthaul": 32_000 * 16 / 10e9 * 1e6,
    })  # fmt: skip


def figure_6(point: Point, seeds: Sequence[int]) -> Found:
    """Compare with autoregressive serving at every acceptance rate."""
    lines = {
        pair: _lines(("proposed", "autoregressive"), [{"pair": pair, "alpha": a} for a in ALPHAS], point, seeds)
        for pair in PAIRS
    }
    saving = {pair: 1.0 - each["proposed"] / each["autoregressive"] for pair, each in lines.items()}
    least = {pair: float(each.min()) for pair, each in saving.items()}
    latency = {pair: each["proposed"] for pair, each in lines.items()}
    values = {f"figure-6{letter}.order": least[pair] for letter, pair in zip("abc", PAIRS, strict=True)}
    values |= {
        "abstract.autoregressive": min(least.values()),
        "figure-6.trend": min(float(np.diff(each).min()) for each in saving.values()),
        "figure-6.pairs": min(float((latency["1.1B-13B"] / latency[pair]).min()) - 1.0 for pair in PAIRS[:2]),
    }
    return Found(values, {f"figure-6 {pair}": _curves("acceptance rate", ALPHAS, each) for pair, each in lines.items()})


def figure_7(point: Point, seeds: Sequence[int]) -> Found:
    """Compare serving mechanisms on 1.1B-7B."""
    rivals = ("no pipeline", "no batching", "fixed length")
    values, curves, lines = {}, {}, {}
    for letter, (label, field, at) in AXES.items():
        lines[letter] = each = _lines(("proposed", *rivals), [{field: value} for value in at], point, seeds)
        values[f"figure-7{letter}.order"] = _least_saving(each, rivals)
        values[f"figure-7{letter}.trend"] = min(float((np.diff(line) / line[:-1]).min()) for line in each.values())
        curves[f"figure-7{letter}"] = _curves(label, at, each)
    output = lines["c"]
    values |= {
        "figure-7a.linear": min(float(np.corrcoef(AXES["a"][2], line)[0, 1] ** 2) for line in lines["a"].values()),
        "figure-7b.best": min(
            float((lines["b"][rival] / lines["b"]["no pipeline"]).min()) - 1.0 for rival in rivals[1:]
        ),
        "figure-7c.advantage": min(float(np.diff(output[rival] - output["proposed"]).min()) for rival in rivals),
        "figure-7b.reduction": _reduction(lines["b"], "no pipeline", AXES["b"][2].index(512)),
        "figure-7c.reduction": _reduction(output, "no pipeline", AXES["c"][2].index(1792)),
    }
    return Found(values, curves)


def _reduction(lines: Mapping[str, Floats], rival: str, place: int) -> float:
    return float(1.0 - lines["proposed"][place] / lines[rival][place])


def figure_8(point: Point, seeds: Sequence[int]) -> Found:
    """Compare batching schemes on 1.1B-7B."""
    rivals = ("static batching", "max batching", "heuristic batching")
    names = ("proposed", *rivals, "autoregressive")
    values, curves, lines = {}, {}, {}
    for letter, (label, field, at) in AXES.items():
        lines[letter] = each = _lines(names, [{field: value} for value in at], point, seeds)
        values[f"figure-8{letter}.order"] = _least_saving(each, rivals)
        curves[f"figure-8{letter}"] = _curves(label, at, each)
    last = {name: float(line[-1]) for name, line in lines["a"].items()}
    values |= {
        "figure-8a.trend": min(float((np.diff(lines["a"][name]) / lines["a"][name][:-1]).min()) for name in names[:-1]),
        "figure-8a.static": last["static batching"] / max(last[name] for name in rivals[1:]) - 1.0,
        "figure-8a.reduction": _reduction(lines["a"], "max batching", AXES["a"][2].index(90)),
        "figure-8b.reduction": _reduction(lines["b"], "heuristic batching", AXES["b"][2].index(1792)),
        "figure-8c.reduction": _reduction(lines["c"], "heuristic batching", AXES["c"][2].index(1024)),
        "figure-8b.best": min(
            float((lines[letter][rival] / lines[letter]["heuristic batching"]).min()) - 1.0
            for letter in "bc" for rival in rivals[:2]
        ),
        "figure-8.autoregressive": min(_least_saving(each, ("autoregressive",)) for each in lines.values()),
    }  # fmt: skip
    return Found(values, curves)


def _parts(pair: str, tasks: int, output: int, seed: int, fade: float) -> tuple[float, Floats]:
    """Return the inference latency under Algorithm 1, and seconds times hertz of every upload, deep fades cut off."""
    problem = paper_1(pair=pair, tasks=tasks, max_output=output, seed=seed)
    result = solve(problem, "algorithm-1")
    assert result.plan is not None
    inference = float(problem.evaluate(result.plan).terms["inference_seconds"])
    floor = np.quantile(problem.snr, fade)
    efficiency = spectral_efficiency(np.maximum(problem.snr, floor))
    uploads = problem.bits_per_token("pipelined") * problem.input_tokens / efficiency
    return inference, uploads


def figure_9(point: Point, seeds: Sequence[int]) -> Found:
    """Compare optimal with uniform bandwidth; medians over some draws a seed."""
    draws = [DRAWS * seed + i for seed in seeds for i in range(DRAWS)]
    hertz, counts = 1e6 * np.array(BANDS), (60, 100)
    found = {}
    for pair in PAIRS:
        for tasks in counts:
            parts = [_parts(pair, tasks, point["output_tokens"], draw, point["deepest_fade"]) for draw in draws]
            both = (
                [inference + uploads.sum() / hertz for inference, uploads in parts],
                [inference + tasks * uploads.max() / hertz for inference, uploads in parts],
            )
            found[pair, tasks] = {
                name: np.median(seconds, axis=0) for name, seconds in zip(("proposed", "uniform"), both, strict=True)
            }
            found[pair, tasks]["reduction"] = np.median(1.0 - np.array(both[0]) / np.array(both[1]), axis=0)
    reductions = {pair: float(found[pair, 100]["reduction"][-1]) for pair in PAIRS}
    names = ("proposed", "uniform")
    values = {f"figure-9{letter}.reduction": reductions[pair] for letter, pair in zip("abc", PAIRS, strict=True)}
    values |= {
        "abstract.reduction": max(reductions.values()),
        "figure-9.order": min(float(each["reduction"].min()) for each in found.values()),
        "figure-9.bandwidth": min(float(-np.diff(each[name]).max()) for each in found.values() for name in names),
        "figure-9.tasks": min(
            float((found[pair, more][name] - found[pair, few][name]).min())
            for pair in PAIRS for few, more in pairwise(counts) for name in names
        ),
        "figure-9.pairs": min(
            float((found[pair, 100]["proposed"] / found[PAIRS[0], 100]["proposed"]).min()) - 1.0 for pair in PAIRS[1:]
        ),
    }  # fmt: skip
    return Found(values, {
        f"figure-9 {pair}": _curves("bandwidth, MHz", BANDS, {name: found[pair, 100][name] for name in names})
        for pair in PAIRS
    })  # fmt: skip


EXPERIMENTS: dict[str, Experiment] = {
    "printed": printed, "figure-6": figure_6, "figure-7": figure_7, "figure-8": figure_8, "figure-9": figure_9,
}  # fmt: skip
