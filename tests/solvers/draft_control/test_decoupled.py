"""One price for all states, against all policies and policy iteration."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from oracles import draft_control as naive

from specopt import DraftControlProblem, Status, generate, solve
from specopt.testing.strategies.draft_control import problems as draft_controls


@settings(max_examples=40)
@given(draft_controls())
def test_optimum_is_that_of_all_policies(problem: DraftControlProblem) -> None:
    """Tests that the rate is the largest of all policies, and proven."""
    result = solve(problem, "decoupled")
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(float(naive.optimum(problem.to_dict())), rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_policy_iteration(seed: int) -> None:
    """Tests that policies and rates agree for 50 states."""
    problem = generate("draft-control/random", states=50, seed=seed, min_draft=0, downlink_factor=0.1)
    best, result = solve(problem, "policy-iteration"), solve(problem, "decoupled")
    assert result.objective == pytest.approx(best.objective, rel=1e-9)
    assert result.plan == best.plan
