"""Serving latency as in practice: batches that change between steps, a rate for each task, and
predicted lengths.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from serving_latency import PAIRS, paper_1
from table import Benchmark, Row

import specopt
from specopt.models.continuous_serving.problem import ContinuousServingProblem
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem


def _solved(problem: specopt.Problem, method: str, time_limit: float = 20.0) -> specopt.Result:
    result = specopt.solve(problem, method, time_limit=time_limit)
    assert result.objective is not None and result.plan is not None
    return result


def _judged(problem: ServingLatencyProblem, result: specopt.Result) -> float:
    assert isinstance(result.plan, ServingLatencyPlan)
    return problem.evaluate(result.plan).objective


def _span(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1%} mean, {min(values):.1%} to {max(values):.1%}"


def continuous(smoke: bool) -> list[Row]:
    """Measure certified gaps, seconds, and the gain over the best fixed batches."""
    rows = []
    for tasks, seeds in ((100, (1, 2)), (1000, (1,))):
        for pair in PAIRS:
            gaps, saved, seconds = [], [], []
            for seed in seeds[: 1 if smoke else None]:
                static = dataclasses.replace(
                    paper_1(pair, 4 if smoke else tasks, seed=seed), output_lengths="known"
                )
                problem = ContinuousServingProblem(**static.shared_fields())
                specopt.solve(problem, "rebatching")
                found = _solved(problem, "rebatching")
                assert found.gap is not None and found.objective is not None
                gaps.append(found.gap)
                seconds.append(found.seconds)
                saved.append(
                    1 - found.objective / _judged(static, _solved(static, "length-aware", 5.0))
                )
            most = f"at most {max(seconds):.2f} s"
            rows.append(
                Row(
                    f"rebatching, {pair}, K = {problem.tasks}, known lengths: largest gap",
                    f"{max(gaps):.2%} ({most}; {min(saved):.0%} or more below the best static"
                    " plan)",
                    "5 %" if tasks == 100 else "within 1 s",
                    max(gaps) <= 0.05 if tasks == 100 else max(seconds) <= 1.0,
                )
            )
    return rows


def rates(smoke: bool) -> list[Row]:
    """Measure the gain of planning with the rate of every task instead of the mean rate."""
    rows = []
    for most in (1, None):
        gains = []
        for seed in range(1 if smoke else 5):
            alike = dataclasses.replace(
                paper_1("1.1B-7B", 6 if smoke else 60, seed=seed), output_lengths="known"
            )
            alike = dataclasses.replace(
                alike, max_speculation_length=most or alike.max_speculation_length
            )
            rate = np.random.default_rng(seed).beta(8, 2, alike.tasks)
            own = ServingLatencyProblem.from_dict(
                alike.to_dict() | {"acceptance_rate": rate.tolist()}
            )
            alike = dataclasses.replace(alike, acceptance_rate=float(rate.mean()))
            plain, ours = _solved(alike, "length-aware"), _solved(own, "stand-in")
            assert ours.objective is not None
            gains.append(1 - ours.objective / _judged(own, plain))
        rows.append(
            Row(
                "stand-in with rates of Beta(8, 2) below the plan for their mean, K ="
                f" {own.tasks}, " + ("l = 1" if most else "any l"),
                _span(gains),
            )
        )
    return rows


def predicted(smoke: bool) -> list[Row]:
    """Compare expected latency from samples with both extremes, judged on other samples."""
    rows = []
    for error in (0.5,) if smoke else (0.0, 0.25, 0.5, 1.0):
        over_known, over_conservative = [], []
        for seed in range(1 if smoke else 3):
            base = paper_1("1.1B-7B", 5 if smoke else 40, max_output=512, seed=seed)
            random = np.random.default_rng(seed)
            guess = base.output_tokens

            def drawn(count: int, guess=guess, random=random, error=error) -> list[list[int]]:
                factor = np.exp(error * random.standard_normal((count, len(guess))) - error**2 / 2)
                return np.clip(np.rint(guess * factor), 1, 4096).astype(int).tolist()

            def with_samples(rows: list[list[int]], base=base) -> ServingLatencyProblem:
                given = {
                    key: value
                    for key, value in base.to_dict().items()
                    if key != "max_output_tokens"
                }
                return ServingLatencyProblem.from_dict(
                    given
                    | {
                        "output_lengths": "predicted",
                        "output_samples": rows,
                        "draft_memory_bytes": 80e9,
                    }
                )

            problem, other = (
                with_samples(drawn(3 if smoke else 40)),
                with_samples(drawn(4 if smoke else 100)),
            )
            mean = np.rint(np.mean(problem.scenarios, axis=0)).astype(np.int64)
            known = dataclasses.replace(
                problem, output_lengths="known", output_tokens=mean, output_samples=None
            )
            safe = dataclasses.replace(
                problem, output_lengths="conservative", output_samples=None, max_output_tokens=4096
            )
            ours = _judged(other, _solved(problem, "stand-in", 60.0))
            over_known.append(1 - ours / _judged(other, _solved(known, "length-aware")))
            over_conservative.append(1 - ours / _judged(other, _solved(safe, "exact", 5.0)))
        rows.append(
            Row(
                f"stand-in, K = {problem.tasks}, lengths off by {error:.0%}: below the plan for the"
                " predicted lengths",
                _span(over_known),
                "0 %, mean",
                float(np.mean(over_known)) >= 0.0,
            )
        )
        rows.append(
            Row(
                f"stand-in, K = {problem.tasks}, lengths off by {error:.0%}: below the conservative"
                " plan",
                _span(over_conservative),
                "0 %, mean",
                float(np.mean(over_conservative)) >= 0.0,
            )
        )
    return rows


BENCHMARKS = (
    Benchmark("continuous-serving: against fixed batches", continuous),
    Benchmark("serving-latency: a rate for each task", rates),
    Benchmark("serving-latency: predicted lengths", predicted),
)
