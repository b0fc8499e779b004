"""The linear program against all policies and policy iteration."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from oracles import draft_control as naive

from specopt import DraftControlProblem, Status, Unsupported, generate, solve
from specopt.testing.strategies.draft_control import problems as draft_controls


@settings(max_examples=40)
@given(draft_controls())
def test_optimum_is_that_of_all_policies(problem: DraftControlProblem) -> None:
    """Tests that the rate is the largest of all policies within 1e-6, and proven by HiGHS's multipliers."""
    result = solve(problem, "linear-program")
    assert result.status is Status.OPTIMAL
    best = float(naive.optimum(problem.to_dict()))
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert result.bound == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(("seed", "downlink", "stay"), [(0, 4.0, 0.5), (1, 0.05, 0.5), (2, 0.0, 0.99)])
def test_agrees_with_policy_iteration(seed: int, downlink: float, stay: float) -> None:
    """Tests that rates agree within 1e-6 for 15 states, and that the multiplier solves the optimality equation."""
    problem = generate("draft-control/random", states=15, min_draft=0, seed=seed, downlink_factor=downlink, stay=stay)
    best, result = solve(problem, "policy-iteration"), solve(problem, "linear-program")
    assert best.objective is not None
    assert result.objective == pytest.approx(best.objective, rel=1e-6)
    assert result.stats["price"] == pytest.approx(best.objective, rel=1e-6)
    assert abs(result.stats["mean_violation"]) <= 1e-6


@pytest.mark.parametrize("weak", [1e-8, 1e-9, 1e-10, 1e-12, 1e-14])
def test_chains_that_hardly_mix(weak: float) -> None:
    """Tests that classes that hold together by less than HiGHS's tolerances get the optimum of the whole chain."""
    problem = generate("draft-control/random", states=4, resolutions=1, min_draft=0, max_draft=3, seed=3)
    rows = [[0.5, 0.5 - weak, weak, 0], [0.25, 0.75, 0, 0], [0, 3 * weak, 0.5, 0.5 - 3 * weak], [0, 0, 0.75, 0.25]]
    problem = DraftControlProblem.from_dict(problem.to_dict() | {"transition": rows})
    price = naive.optimum_by_price(problem.to_dict(), naive.completed(problem.transition.scaled.tolist()))
    result = solve(problem, "linear-program")
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(float(price), rel=1e-6)
    assert result.stats["price"] == pytest.approx(float(price), rel=1e-6)


def test_too_large() -> None:
    """Tests that more pairs of state and action than the program takes are refused, with a method that can."""
    problem = generate("draft-control/random", states=20, max_draft=9999)
    with pytest.raises(Unsupported, match="has 999,900 pairs of state and action, the method takes at most 100,000"):
        solve(problem, "linear-program")
    assert solve(problem).status is Status.OPTIMAL
