"""Value iteration against all policies and against policy iteration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from oracles import draft_control as naive
from strategies_draft_control import draft_controls

from specopt import DraftControlProblem, Status, TransitionMatrix, generate, solve


@settings(max_examples=40)
@given(draft_controls())
def test_optimum_is_that_of_all_policies(problem: DraftControlProblem) -> None:
    """Tests that the rate is the largest of all policies within 1e-9, and proven."""
    result = solve(problem, "value-iteration")
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(float(naive.optimum(problem.to_dict())), rel=1e-9)
    assert abs(result.stats["mean_violation"]) <= 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_policy_iteration(seed: int) -> None:
    """Tests that policies and rates agree within 1e-9 for 30 states."""
    problem = generate("draft-control/random", states=30, seed=seed, min_draft=0)
    best, result = solve(problem), solve(problem, "value-iteration")
    assert result.objective == pytest.approx(best.objective, rel=1e-9)
    assert result.plan == best.plan


@pytest.mark.parametrize("size", [2, 3, 10])
def test_periodic_chains_converge(size: int) -> None:
    """Tests that a ring of states, which plain value iteration would go round for ever, is solved."""
    problem = generate("draft-control/random", states=size, seed=size)
    assert isinstance(problem, DraftControlProblem)
    ring = TransitionMatrix(np.roll(np.eye(size), 1, axis=1))
    problem = DraftControlProblem.from_dict(problem.to_dict() | {"transition": ring.dump()})
    best, result = solve(problem), solve(problem, "value-iteration")
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best.objective, rel=1e-9)
    assert 0 < result.stats["sweeps"] < 10_000


def test_a_slow_chain_keeps_a_time_limit() -> None:
    """Tests that a chain that mixes in 10^9 steps ends in time, with a plan."""
    problem = generate("draft-control/random", states=40, seed=1)
    assert isinstance(problem, DraftControlProblem)
    rows = np.eye(40) * (1 - 1e-9) + np.roll(np.eye(40), 1, axis=1) * 1e-9
    problem = DraftControlProblem.from_dict(problem.to_dict() | {"transition": rows.tolist()})
    result = solve(problem, "value-iteration", time_limit=0.3)
    assert result.plan is not None
    assert result.termination.value == "time_limit"
