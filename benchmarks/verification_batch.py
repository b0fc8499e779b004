"""Verification batching, one epoch: proofs, the sweep's gap, growth, and the plain integer
program.
"""

from __future__ import annotations

import numpy as np
from table import Benchmark, Row, exponent

import specopt

FAMILIES = ("warm", "mixed", "tight", "memory-bound")


def _problem(family: str, requests: int, seed: int) -> specopt.VerificationBatchProblem:
    problem = specopt.generate(f"verification-batch/{family}", requests=requests, seed=seed)
    assert isinstance(problem, specopt.VerificationBatchProblem)
    return problem


def proofs(smoke: bool) -> list[Row]:
    """Measure the time of the default method until its plan is proven, including everything."""
    rows = []
    for requests, target in ((20, 0.05), (40, 1.0)) if smoke else ((200, 0.05), (1000, 1.0)):
        for family in FAMILIES:
            specopt.solve(_problem(family, requests, 99))
            results = [
                specopt.solve(_problem(family, requests, seed))
                for seed in range(2 if smoke else 20)
            ]
            seconds = [result.seconds for result in results]
            proven = sum(result.status == "optimal" for result in results)
            rows.append(
                Row(
                    f"{family}, n = {requests:,}: proven optimum",
                    f"{proven} of {len(results)}; median {1e3 * np.median(seconds):.0f} ms, "
                    f"longest {1e3 * max(seconds):.0f} ms",
                    f"{1e3 * target:.0f} ms",
                    proven == len(results) and float(np.median(seconds)) <= target,
                )
            )
    return rows


def sweep_gaps(smoke: bool) -> list[Row]:
    """Compare the sweep with proven optima."""
    rows = []
    for family in FAMILIES:
        gaps = []
        for requests in (10,) if smoke else (50, 100, 200):
            for seed in range(2 if smoke else 20):
                problem = _problem(family, requests, seed)
                best, quick = specopt.solve(problem), specopt.solve(problem, "sweep")
                assert best.objective is not None and quick.objective is not None
                gaps.append(1 - quick.objective / best.objective if best.objective else 0.0)
        rows.append(
            Row(
                f"sweep, {family}: {len(gaps)} problems, distance to the proven optimum",
                f"mean {np.mean(gaps):.3%}, largest {max(gaps):.2%}",
                "0.3 %, 2 %",
                bool(np.mean(gaps) <= 0.003 and max(gaps) <= 0.02),
            )
        )
    return rows


def growth_and_rival(smoke: bool) -> list[Row]:
    """Measure the growth of the cost, and the plain integer program."""
    rows = []
    sizes = [10, 20, 40] if smoke else [125, 250, 500, 1000]
    for method in ("threshold", "sweep"):
        seconds = []
        for requests in sizes:
            problems = [_problem("mixed", requests, seed) for seed in range(2 if smoke else 10)]
            seconds.append(
                float(np.median([specopt.solve(problem, method).seconds for problem in problems]))
            )
        rows.append(
            Row(
                f"growth of {method} with n, mixed",
                f"n^{exponent(sizes, seconds):.2f} over {sizes}",
            )
        )
    requests = 10 if smoke else 200
    for family in FAMILIES:
        problem = _problem(family, requests, 1)
        specopt.solve(problem, "milp", time_limit=1)
        ours, rival = specopt.solve(problem), specopt.solve(problem, "milp", time_limit=30)
        assert ours.objective is not None and rival.objective is not None
        assert rival.objective <= ours.objective * (1 + 1e-6)
        rows.append(
            Row(
                f"threshold against milp, {family}, n = {requests}",
                f"{1e3 * ours.seconds:.0f} ms against {1e3 * rival.seconds:.0f} ms"
                f" ({rival.status.value})",
            )
        )
    return rows


BENCHMARKS = (
    Benchmark("verification-batch: proofs", proofs),
    Benchmark("verification-batch: the sweep's distance to the optimum", sweep_gaps),
    Benchmark("verification-batch: growth and the plain integer program", growth_and_rival),
)
