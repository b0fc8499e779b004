"""The bare compiled call of a controller."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from helpers.untyped import solve
from hypothesis import given

from specopt import DraftAllocationProblem
from specopt.kinds.draft_allocation.strategies import problems as draft_allocations
from specopt.solvers.draft_allocation import fast


@given(draft_allocations(clients=(1, 8), budget=(0, 30)))
def test_is_the_water_level(problem: DraftAllocationProblem) -> None:
    """Tests that the call gives the plan of the method, from read-only arrays, too, and returns its
    sum.
    """
    out = np.full(problem.clients, -1)
    caps = problem.max_draft_tokens
    total = fast.allocate(
        problem.weights, problem.acceptance_rates, problem.budget_tokens, caps, out
    )
    plan = solve(problem, "water-level").plan
    assert out.tolist() == plan.draft_tokens.tolist()
    assert total == out.sum()
    again = np.empty_like(out)
    caps = None if caps is None else caps.copy()
    fast.allocate(
        problem.weights.copy(), problem.acceptance_rates.copy(), problem.budget_tokens, caps, again
    )
    assert again.tolist() == out.tolist()


def test_arguments_that_do_not_fit() -> None:
    """Tests that other lengths and other types are refused."""
    floats, ints = np.full(3, 0.5), np.empty(3, np.int64)
    fast.warm_up()
    for weights, rates, caps, out in (
        (floats[:2], floats, None, ints),
        (floats, floats[:2], None, ints),
        (floats, floats, ints[:2], ints),
        (floats, floats, None, ints[:2]),
    ):
        with pytest.raises(ValueError, match="must all have the same length"):
            fast.allocate(weights, rates, 3, caps, out)
    with pytest.raises(TypeError):
        fast.allocate(floats, floats, 3, None, np.empty(3, np.int32))
    with pytest.raises(TypeError):
        fast.allocate(np.full(6, 0.5)[::2], floats, 3, None, ints)


def test_the_example_runs() -> None:
    """Tests that the example in the documentation is right."""
    assert doctest.testmod(fast).failed == 0
