"""The convex program: its lines, its bound from any price, and its status."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given

from specopt import FairGoodputProblem, Status, Termination, Unsupported
from specopt.kinds.fair_goodput.strategies import problems as fair_goodputs
from specopt.solvers.fair_goodput.convex import Convex, price_bound, repaired
from specopt.solvers.fair_goodput.region import Region, region_of


def test_lines_are_added_where_needed() -> None:
    """Tests that a client that takes nearly all tokens gets more lines than an even share."""
    problem = FairGoodputProblem(
        acceptance_rates=np.array([0.99, *[0.01] * 19]), budget_tokens=60, fairness=0.5
    )
    result = solve(problem, "convex")
    assert result.status is Status.OPTIMAL
    assert result.stats["programs"] > 1
    assert result.objective == pytest.approx(solve(problem, "dual").objective, rel=1e-6)


@given(fair_goodputs(clients=(1, 6), budget=(0, 20), per=("round",)))
def test_any_price_bounds(problem: FairGoodputProblem) -> None:
    """Tests that the bound from any price is above the optimum, and touches it at the optimal
    price.
    """
    region = region_of(problem)
    best = solve(problem, "dual")
    scale = max(1.0, abs(best.objective))
    for price in (0.0, 1e-6, 0.01, 0.2, 3.0):
        assert price_bound(problem, region, price) >= best.objective - 1e-12 * scale
    assert price_bound(problem, region, best.stats["price"]) <= best.objective + 1e-9 * scale


def test_repaired_solutions_keep_all_limits() -> None:
    """Tests that an inexact solution is moved inside limits and budget, whichever way it is off."""
    region = Region(np.array([0.0, 1.0, 0.0]), np.array([2.0, 3.0, 1.0]))
    for tokens in (
        [2.5, 0.5, 1.5],
        [0.0, 3.0, 0.5],
        [-0.1, 1.0, 0.2],
        [2.0, 3.0, 1.0],
        [0.0, 1.0, 0.0],
    ):
        found = repaired(region, np.array(tokens), 4.0)
        assert (found >= region.least).all() and (found <= region.most).all()
        assert found.sum() == pytest.approx(4.0)


def test_out_of_time_says_so() -> None:
    """Tests that a program that runs out of time returns the quick plan without a claim, not a zero
    solution.
    """
    solve(generate("fair-goodput/paper-5"), "convex")  # imports CVXPY
    problem = FairGoodputProblem(
        acceptance_rates=np.linspace(0.1, 0.9, 10_000), budget_tokens=30_000
    )
    result = solve(problem, "convex", time_limit=0.25)
    assert result.termination is Termination.TIME_LIMIT
    assert result.status is Status.FEASIBLE
    assert result.bound is None


def test_accuracy_is_an_option() -> None:
    """Tests that a loose accuracy still gives an honest bound."""
    problem = generate("fair-goodput/paper-5", rates="wide")
    result = solve(problem, Convex(accuracy=1e-2))
    best = solve(problem)
    assert result.objective <= best.objective + 1e-12 <= result.bound + 2e-12


@pytest.mark.parametrize(
    ("method", "problem", "reason"),
    [
        (
            "convex",
            generate("fair-goodput/per-second"),
            "has rates per second, but the method accepts rates per round",
        ),
        (
            "enumeration",
            generate("fair-goodput/paper-5", clients=8, budget=20),
            "has more than 3,000 allocations, but the method accepts at most 3,000 allocations",
        ),
    ],
)
def test_what_is_refused(method: str, problem: FairGoodputProblem, reason: str) -> None:
    """Tests that reference methods say what they cannot solve."""
    with pytest.raises(Unsupported, match=reason):
        solve(problem, method)
