"""Fair goodput: `dual` against CVXPY with Clarabel, a million clients, and the optimum per
second.
"""

from __future__ import annotations

import math

import numpy as np
from table import Benchmark, Row, exponent

import specopt
from specopt.models.fair_goodput.problem import FairGoodputProblem
from specopt.solvers.fair_goodput.convex import Convex

CLARABEL_DEFAULT = 1e-8


def _clients(count: int) -> FairGoodputProblem:
    """Return clients with random acceptance rates and, on average, four draft tokens each."""
    rates = np.random.default_rng(1).uniform(0.05, 0.95, count)
    return FairGoodputProblem(acceptance_rates=rates, budget_tokens=4 * count)


def _seconds(
    problem: specopt.Problem, method: str | Convex, repeat: int
) -> tuple[float, specopt.Result]:
    """Return the median of the seconds that the results report, judge included, after a warm-up
    call, and the last result.
    """
    results = [specopt.solve(problem, method) for _ in range(repeat + 1)]
    return float(np.median([result.seconds for result in results[1:]])), results[-1]


def against_cvxpy(smoke: bool) -> list[Row]:
    """Compare `dual` with CVXPY and Clarabel on the same problems, both called by `solve`."""
    sizes = [100, 1000] if smoke else [100, 1000, 10_000]
    rows, ours, theirs = [], [], []
    for size in sizes:
        problem = _clients(size)
        mine, best = _seconds(problem, "dual", 3 if smoke else 21)
        rival, other = _seconds(
            problem, Convex(accuracy=CLARABEL_DEFAULT), 3 if size < 10_000 else 1
        )
        assert best.objective is not None and other.objective is not None and best.bound is not None
        assert math.isclose(best.objective, other.objective, rel_tol=1e-6), (
            "both must find the same optimum"
        )
        ours.append(mine)
        theirs.append(rival)
        target = {100: 50, 10_000: 500}.get(size)
        rows.append(
            Row(
                f"dual against CVXPY and Clarabel, N = {size:,}",
                f"{rival / mine:.0f} times faster ({1e3 * mine:.2f} ms, {1e3 * rival:.0f} ms)",
                "" if target is None else f"{target} times",
                None if target is None else rival / mine >= target,
            )
        )
        proof = best.stats["duality_gap"] / max(1.0, abs(best.objective))
        rows.append(Row(f"its duality gap, N = {size:,}", f"{proof:.1e}", "1e-11", proof <= 1e-11))
    rows.append(
        Row(
            "growth with N, ours and the rival's",
            f"N^{exponent(sizes, ours):.2f}, N^{exponent(sizes, theirs):.2f}",
        )
    )
    return rows


def large(smoke: bool) -> list[Row]:
    """Measure a million clients, including the schedule and the judge."""
    rows, times = [], []
    sizes = [1000, 10_000] if smoke else [10_000, 100_000, 1_000_000]
    for size in sizes:
        seconds, result = _seconds(_clients(size), "dual", 3)
        times.append(seconds)
        rows.append(
            Row(
                f"dual, N = {size:,}: optimum, schedule, judge",
                f"{result.status.value} in {seconds:.3f} s, {result.stats['changes'] / size:.2f} N"
                " changes",
                "4 s, 2 N changes" if size == 1_000_000 else "",
                (
                    seconds <= 4.0 and result.stats["changes"] <= 2 * size
                    if size == 1_000_000
                    else None
                ),
            )
        )
    rows.append(Row("growth with N", f"N^{exponent(sizes, times):.2f}"))
    return rows


def per_second(smoke: bool) -> list[Row]:
    """Compute optima per second, and the loss of counting tokens per round."""
    rows, times = [], []
    sizes = [4, 8] if smoke else [8, 16, 32, 64]
    seeds = 2 if smoke else 10
    for size in sizes:
        seconds, gains, proven = [], [], 0
        for seed in range(seeds):
            problem = specopt.generate(
                "fair-goodput/per-second", clients=size, budget=4 * size, seed=seed
            )
            result = specopt.solve(problem)
            rule = specopt.solve(problem, "tokens-per-round")
            assert result.objective is not None and rule.objective is not None
            seconds.append(result.seconds)
            gains.append(math.exp((result.objective - rule.objective) / size))
            proven += result.status == "optimal"
        times.append(float(np.median(seconds)))
        rows.append(
            Row(
                f"column-generation, N = {size}, C = {4 * size}, {seeds} seeds",
                f"{proven} proven, at most {max(seconds):.3f} s; {np.median(gains):.2f} times the"
                " geometric mean rate of tokens-per-round",
                "optimal within 2 s" if size == 32 else "",
                proven == seeds and max(seconds) <= 2.0 if size == 32 else None,
            )
        )
    rows.append(Row("growth with N", f"N^{exponent(sizes, times):.2f}"))
    return rows


BENCHMARKS = (
    Benchmark("fair-goodput: per round against CVXPY", against_cvxpy),
    Benchmark("fair-goodput: many clients", large),
    Benchmark("fair-goodput: per second", per_second),
)
