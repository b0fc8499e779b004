"""Greedy: the claim that it is exact, and its certificate."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import draft_allocation as naive

from specopt import DraftAllocationProblem, Status, Termination
from specopt.kinds.draft_allocation.strategies import problems as draft_allocations
from specopt.solvers.draft_allocation import AutoAllocation
from specopt.solvers.draft_allocation.method import lagrangian_bound, price_of, scaled


@settings(max_examples=100)
@given(
    draft_allocations(clients=(1, 3), budget=(0, 6)), st.floats(0.0, 10.0, allow_subnormal=False)
)
def test_every_price_bounds(problem: DraftAllocationProblem, price: float) -> None:
    """Tests that the Lagrangian bound holds for any price, and is attained at the price of the last
    token.
    """
    optimum = float(naive.optimum(problem.to_dict()))
    assert lagrangian_bound(problem, price) >= optimum * (1 - 1e-12)
    plan = solve(problem, "greedy").plan
    tight = lagrangian_bound(problem, price_of(problem, plan.draft_tokens))
    assert tight == pytest.approx(optimum, rel=1e-12)


@given(st.lists(st.floats(0, 1e300, allow_subnormal=False), min_size=1, max_size=5))
def test_scaling_is_exact(weights: list[float]) -> None:
    """Tests that weights are scaled by a power of two, with the largest in [1/2, 1) and no digit
    lost.
    """
    found = scaled(np.array(weights))
    if max(weights) == 0:
        assert not found.any()
        return
    assert 0.5 <= found.max() < 1
    largest = int(np.argmax(weights))
    for weight, value in zip(weights, found.tolist(), strict=True):
        if value > 1e-290:
            assert weight / weights[largest] == value / found[largest]


def test_ties_go_to_the_lower_index() -> None:
    """Tests that among equal marginals the lower client drafts first."""
    problem = DraftAllocationProblem(
        acceptance_rates=np.full(4, 0.5), weights=np.array([0.5, 1.0, 1.0, 0.5]), budget_tokens=5
    )
    for method in ("greedy", "water-level"):
        plan = solve(problem, method).plan
        assert plan.draft_tokens.tolist() == [1, 2, 2, 0]


def test_useless_tokens_stay_unused() -> None:
    """Tests that no token goes to a client that gains nothing by it, or above a limit."""
    problem = DraftAllocationProblem(
        acceptance_rates=np.array([0.0, 0.9, 0.9]),
        weights=np.array([1.0, 0.0, 1.0]),
        budget_tokens=50,
        max_draft_tokens=np.array([9, 9, 3]),
    )
    for method in ("greedy", "water-level"):
        result = solve(problem, method)
        assert result.plan.draft_tokens.tolist() == [0, 0, 3]
        assert result.stats["price"] == 0
        assert result.status is Status.OPTIMAL


def test_out_of_time_gives_what_it_has(own_clock: None) -> None:
    """Tests that an endless allocation ends in time, with the tokens taken so far and a valid
    bound.
    """
    problem = DraftAllocationProblem(
        acceptance_rates=np.array([1 - 1e-12, 0.5]), weights=np.ones(2), budget_tokens=10**15
    )
    result = solve(problem, "greedy", time_limit=0.2)
    assert result.termination is Termination.TIME_LIMIT
    assert result.seconds < 0.26
    assert result.plan.draft_tokens[0] > 1000
    best = solve(problem, "water-level").objective
    assert result.objective < best <= result.bound


def test_the_plan_without_time_is_the_greedy_one() -> None:
    """Tests that what `auto` falls back on takes the largest marginals of a small budget."""
    problem = generate("draft-allocation/uniform", seed=1)
    (plan,) = AutoAllocation().plain_plans(problem)
    assert problem.evaluate(plan).objective == solve(problem, "greedy").objective
