"""Figures 6-9 of paper 1, and the numbers that follow from its equations.

The text does not give the axes of the figures. The points are those that it names, and round
numbers between them. All schemes plan with O_max, as in Sec. III-B. All points average over the
same draws of users and tasks. In Figure 9 the latency of a draw has no mean under Rayleigh fading,
so the kind of average is an assumption.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from papers.experiment import Curves, Experiment, Found, Point
from papers.ledger import paper
from specopt.api.solve import solve
from specopt.instances.serving_latency.paper_1 import LLAMA_7B, paper_1
from specopt.models.decoder import ExactDecoder
from specopt.models.fields import Floats
from specopt.models.serving_latency.problem import ServingLatencyProblem
from specopt.models.uplink import spectral_efficiency
from specopt.solvers.method import Method
from specopt.solvers.serving_latency.baselines import (
    FixedLength,
    HeuristicBatching,
    StaticBatching,
)

PAIRS = ("68M-7B", "1.1B-7B", "1.1B-13B")
ALPHAS = (0.5, 0.6, 0.7, 0.8, 0.9)
BANDS = (5.0, 10.0, 15.0, 20.0, 25.0)
AXES = {
    "a": ("tasks K", "tasks", (50, 60, 70, 80, 90, 100)),
    "b": ("maximum input length", "max_input", (256, 512, 1024, 1792)),
    "c": ("maximum output length", "max_output", (512, 1024, 1792, 2048)),
}
REDUCTIONS = {
    "figure-7b": ("no pipeline", 512),
    "figure-7c": ("no pipeline", 1792),
    "figure-8a": ("max batching", 90),
    "figure-8b": ("heuristic batching", 1792),
    "figure-8c": ("heuristic batching", 1024),
}
"""Scheme and position on the axis for which a reduction is printed."""
DRAWS = 3  # per seed, in Figure 9

EXACT_7B = ExactDecoder(
    layers=32,
    hidden=4096,
    ffn=11008,
    heads=32,
    kv_heads=32,
    head_dim=128,
    gated=True,
    vocabulary=32_000,
    tied=False,
    name="LLaMA-7B",
)

_AMPLE = 999.0  # from this number of GB on, the memory of the verify model is not limited


def _solved(problem: ServingLatencyProblem, method: Method | str) -> float:
    result = solve(problem, method)
    if result.termination == "interrupted":
        raise KeyboardInterrupt
    assert result.objective is not None, "single tasks fit the memory in every setting"
    return result.objective


def _scheme(name: str, problem: ServingLatencyProblem, point: Point) -> float:
    """Return the latency of a scheme of Sec. IV."""
    literal = point.get("heuristic_start") == "two batches"
    heuristic = (
        HeuristicBatching(first_size=(problem.tasks + 1) // 2) if literal else HeuristicBatching()
    )
    if name == "no pipeline":
        sequential = dataclasses.replace(problem, mechanism="sequential")
        plan = solve(problem, "algorithm-1").plan
        assert plan is not None
        same = sequential.evaluate(plan).objective
        return (
            same
            if point["sequential_batches"] == "same"
            else min(same, _solved(sequential, "max-batching"))
        )
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
    """Return the mean latency of each scheme at the points of an axis."""
    memory = point["verify_memory_gb"] * 1e9 if point["verify_memory_gb"] < _AMPLE else None
    problems = [
        [
            dataclasses.replace(paper_1(**cell, seed=seed), verify_memory_bytes=memory)
            for seed in seeds
        ]
        for cell in cells
    ]
    return {
        name: np.array(
            [np.mean([_scheme(name, problem, point) for problem in draws]) for draws in problems]
        )
        for name in names
    }


def _least_saving(lines: Mapping[str, Floats], baselines: Iterable[str]) -> float:
    return float(min((1.0 - lines["proposed"] / lines[baseline]).min() for baseline in baselines))


def _curves(
    x: str,
    at: Sequence[float],
    lines: Mapping[str, Floats],
    printed: Mapping[str, list[tuple[float, float]]] = {},
) -> Curves:
    return Curves(
        x, "latency, s", at, {name: line.tolist() for name, line in lines.items()}, printed
    )


def printed(_: Point, __: Sequence[int]) -> Found:
    """Return the numbers that follow from printed ones without a run."""
    return Found(
        {
            "sec-2.weights": EXACT_7B.parameter_bytes / 1e9,
            "eq-9": LLAMA_7B.parameter_bytes / EXACT_7B.parameter_bytes,
            "sec-2.fronthaul": 32_000 * 16 / 10e9 * 1e6,
        }
    )


def figure_6(point: Point, seeds: Sequence[int]) -> Found:
    """Compare with autoregressive serving at all acceptance rates."""
    values, curves = {}, {}
    for letter, pair in zip("abc", PAIRS, strict=True):
        each = _lines(
            ("proposed", "autoregressive"),
            [{"pair": pair, "alpha": a} for a in ALPHAS],
            point,
            seeds,
        )
        values[f"figure-6{letter}.order"] = _least_saving(each, ("autoregressive",))
        curves[f"figure-6 {pair}"] = _curves("acceptance rate", ALPHAS, each)
    return Found(values | {"abstract.autoregressive": min(values.values())}, curves)


def _compared(
    figure: str, baselines: Sequence[str], more: Sequence[str], point: Point, seeds: Sequence[int]
) -> tuple[dict[str, float], dict[str, dict[str, Floats]], dict[str, Curves]]:
    """Return the minimum saving and the reduction on each axis, the lines, and curves with the
    printed points.
    """
    values, lines, curves = {}, {}, {}
    for letter, (label, field, at) in AXES.items():
        name = figure + letter
        lines[letter] = each = _lines(
            ("proposed", *baselines, *more), [{field: value} for value in at], point, seeds
        )
        values[f"{name}.order"], marks = _least_saving(each, baselines), {}
        if name in REDUCTIONS:
            baseline, x = REDUCTIONS[name]
            theirs, ours = (float(each[one][at.index(x)]) for one in (baseline, "proposed"))
            values[f"{name}.reduction"] = 1.0 - ours / theirs
            marks = {"proposed": [(float(x), theirs * (1.0 - _printed(name)))]}
        curves[name] = _curves(label, at, each, marks)
    return values, lines, curves


def _printed(figure: str) -> float:
    return float(paper("paper-1").statements[f"{figure}.reduction"].printed)


def _best(lines: Mapping[str, Floats], one: str, others: Iterable[str]) -> float:
    return min(float((lines[other] / lines[one]).min()) for other in others) - 1.0


def figure_7(point: Point, seeds: Sequence[int]) -> Found:
    """Compare serving mechanisms on 1.1B-7B."""
    baselines = ("no pipeline", "no batching", "fixed length")
    values, lines, curves = _compared("figure-7", baselines, (), point, seeds)
    values |= {
        "figure-7a.linear": min(
            float(np.corrcoef(AXES["a"][2], line)[0, 1] ** 2) for line in lines["a"].values()
        ),
        "figure-7b.best": _best(lines["b"], baselines[0], baselines[1:]),
    }
    return Found(values, curves)


def figure_8(point: Point, seeds: Sequence[int]) -> Found:
    """Compare batching schemes on 1.1B-7B."""
    baselines = ("static batching", "max batching", "heuristic batching")
    values, lines, curves = _compared("figure-8", baselines, ("autoregressive",), point, seeds)
    last = [float(lines["a"][name][-1]) for name in baselines]
    values |= {
        "figure-8a.static": last[0] / max(last[1:]) - 1.0,
        "figure-8b.best": min(_best(lines[letter], baselines[2], baselines[:2]) for letter in "bc"),
        "figure-8.autoregressive": min(
            _least_saving(each, ("autoregressive",)) for each in lines.values()
        ),
    }
    return Found(values, curves)


def _uploads(problem: ServingLatencyProblem, fade: float) -> Floats:
    """Return seconds times hertz of each upload, without deep fades."""
    efficiency = spectral_efficiency(np.maximum(problem.snr, np.quantile(problem.snr, fade)))
    return problem.bits_per_token("pipelined") * problem.input_tokens / efficiency


def figure_9(point: Point, seeds: Sequence[int]) -> Found:
    """Compare optimal with uniform bandwidth for 100 tasks; inference, which hardly differs, is
    that of the first draw.
    """
    draws = {"mean of 100 draws": 100, "one draw": 1}.get(point["average"], DRAWS * len(seeds))
    average = np.median if point["average"] == "median of draws" else np.mean
    values, curves, hertz = {}, {}, 1e6 * np.array(BANDS)
    for letter, pair in zip("abc", PAIRS, strict=True):
        problems = [
            paper_1(pair=pair, max_output=point["output_tokens"], seed=DRAWS * seeds[0] + i)
            for i in range(draws)
        ]
        plan = solve(problems[0], "algorithm-1").plan
        assert plan is not None
        inference = float(problems[0].evaluate(plan).terms["inference_seconds"])
        uploads = np.array([_uploads(problem, point["deepest_fade"]) for problem in problems])
        needs = {"proposed": uploads.sum(axis=1), "uniform": uploads.shape[1] * uploads.max(axis=1)}
        each = {name: inference + average(need) / hertz for name, need in needs.items()}
        values[f"figure-9{letter}.reduction"] = float(
            1.0 - each["proposed"][-1] / each["uniform"][-1]
        )
        marks = {
            "proposed": [
                (BANDS[-1], float(each["uniform"][-1]) * (1.0 - _printed(f"figure-9{letter}")))
            ]
        }
        curves[f"figure-9 {pair}"] = _curves("bandwidth, MHz", BANDS, each, marks)
    return Found(values | {"abstract.reduction": max(values.values())}, curves)


EXPERIMENTS: dict[str, Experiment] = {
    "printed": printed,
    "figure-6": figure_6,
    "figure-7": figure_7,
    "figure-8": figure_8,
    "figure-9": figure_9,
}
