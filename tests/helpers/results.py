"""What every result says of itself, whatever method it is of."""

from __future__ import annotations

import math

from specopt import Problem, Result, Status
from specopt.models.judge import verify
from specopt.models.result import Termination
from specopt.solvers.method import Method


def check_result(problem: Problem, method: Method, result: Result) -> None:
    """Check that a result is consistent, and that the judge agrees with it."""
    assert (result.kind, result.problem_sha256, result.method) == (
        problem.kind,
        problem.sha256,
        method.name,
    )
    assert result.seconds >= 0
    if result.status is not Status.OPTIMAL:
        assert result.termination not in (Termination.CONVERGED, Termination.GAP), method.name
    if result.status in (Status.INFEASIBLE, Status.NONE):
        assert result.plan is result.objective is result.gap is None, method.name
        assert result.terms == {} and result.explanation, method.name
        return
    assert (
        result.objective is not None and result.plan is not None and result.explanation is None
    ), method.name
    report = verify(problem, result)
    assert report.feasible and report.matches and report.objective == result.objective, method.name
    if all(isinstance(term, float) for term in result.terms.values()):
        assert math.isclose(sum(result.terms.values()), result.objective, rel_tol=1e-12), (
            method.name
        )
    if result.bound is not None:
        below = result.bound <= result.objective
        assert below == (problem.sense == "minimize") or result.bound == result.objective, (
            method.name
        )
        gap = problem.gap(result.objective, result.bound)
        if result.gap is None:
            assert not math.isfinite(gap), method.name
        else:
            assert abs(result.gap - gap) <= max(method.tolerance, 1e-6 * gap), method.name


def check_results(problem: Problem, found: list[tuple[Method, Result]]) -> None:
    """Check every result, and every bound and every proof that there is no plan against the plans
    of all.
    """
    sign = 1 if problem.sense == "minimize" else -1
    for method, result in found:
        check_result(problem, method, result)
        for other, rival in found:
            if rival.objective is None:
                continue
            name = f"{method.name} against {other.name}"
            assert result.status is not Status.INFEASIBLE, (
                f"{name}: infeasible, but there is a plan"
            )
            slack = max(method.tolerance, other.tolerance) * max(1.0, abs(rival.objective))
            if result.bound is not None:
                what = f"{name}: bound {result.bound!r}, plan {rival.objective!r}"
                assert sign * result.bound <= sign * rival.objective + slack, what
