"""Small problems on which methods once went wrong, by every method that takes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.results import check_results

from specopt import Problem, Status, load, methods
from specopt.testing.guarantees import Case

EDGES = sorted((Path(__file__).parent / "data" / "edges").glob("*.json"))

OPTIMA = {
    "verification-one-request-0.3": 1.0,
    "verification-methods-disagree": 3.0,
    "verification-memory-sum": 3.0,
    "verification-milp-traceback": 3.0000002,
    "verification-presolve-loses": 9.633,
}
"""Objectives that every exact method proves."""

SECONDS = 0.5
"""Time limit of a solve; problems with a known optimum have none."""


@pytest.mark.parametrize("path", EDGES, ids=lambda path: path.stem)
def test_every_method_is_right(path: Path) -> None:
    """Tests that plans pass the judge, that no bound cuts off a plan, and that exact methods prove
    known optima.
    """
    problem = load(path)
    assert isinstance(problem, Problem)
    cases = [Case(method(), problem) for method in methods(problem)]
    limit = None if path.stem in OPTIMA else SECONDS
    found = [(case.method, case.solve(time_limit=limit)) for case in cases]
    check_results(problem, found)
    for method, result in found:
        if method.exact and path.stem in OPTIMA:
            assert result.status is Status.OPTIMAL, method.name
            assert result.objective == pytest.approx(OPTIMA[path.stem], rel=method.tolerance)
    plans = [result.plan is not None for _, result in found]
    assert plans[0] == any(plans), "the default has a plan wherever another method has one"


@pytest.mark.parametrize("path", EDGES, ids=lambda path: path.stem)
def test_the_default_has_a_plan_without_time(path: Path) -> None:
    """Tests that a time limit of 0 leaves a plan."""
    problem = load(path)
    assert isinstance(problem, Problem)
    assert Case(methods(problem)[0](), problem).solve(time_limit=0.0).plan is not None
