"""Brute force against exact rational enumeration, and every method against brute force."""

from __future__ import annotations

import math

import pytest
from helpers.untyped import generate, solve
from hypothesis import given
from hypothesis import strategies as st
from oracles import draft_allocation as naive

from specopt import Unsupported, methods
from specopt.solvers.draft_allocation.brute_force import BruteForceAllocation, allocations


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(0, 12))
def test_allocations(caps: list[int], budget: int) -> None:
    """Tests that the count is the number of allocations, as long as it is not larger than asked
    for.
    """
    expected = len(list(naive.allocations(caps, budget)))
    assert allocations([min(cap, budget) for cap in caps], budget, 10**9) == expected
    assert allocations([min(cap, budget) for cap in caps], budget, 20) > 20 or expected <= 20


@pytest.mark.parametrize(("clients", "budget"), [(9, 20), (10**5, 10**5), (2, 10**15), (10**5, 1)])
def test_allocations_stops_early(clients: int, budget: int) -> None:
    """Tests that huge numbers are recognised at once."""
    exact = math.comb(clients + budget, clients) if clients + budget < 1000 else math.inf
    assert min(exact, 10**5) <= allocations([budget] * clients, budget, 10**5)


def test_refuses_above_its_size() -> None:
    """Tests that the refusal names the size and the methods that can."""
    problem = generate("draft-allocation/uniform", clients=9, budget=20)
    with pytest.raises(
        Unsupported,
        match=r"more than 200,000 allocations.*; methods that can: auto, water-level, greedy",
    ):
        solve(problem, BruteForceAllocation())
    assert BruteForceAllocation not in methods(problem)
