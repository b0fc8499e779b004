"""The water level: the plan of greedy, bit for bit, at any budget and in any corner of floating
point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import draft_allocation as naive

from specopt import DraftAllocationProblem, Status
from specopt.kinds.draft_allocation.strategies import NEXT_TO_1
from specopt.kinds.draft_allocation.strategies import problems as draft_allocations
from specopt.models.fields import Floats, Ints
from specopt.solvers.draft_allocation import fast
from specopt.solvers.draft_allocation.kernels.water_level import above, find_level


def drafts(problem: DraftAllocationProblem, method: str) -> Any:
    """The drafts of a method."""
    return solve(problem, method).plan.draft_tokens.tolist()


@settings(max_examples=140)
@given(
    draft_allocations(clients=(1, 12), budget=(0, 60))
    | draft_allocations(clients=(1, 6), budget=(1000, 5000))
)
def test_same_plan_as_greedy(problem: DraftAllocationProblem) -> None:
    """Tests that the plan is greedy's, ties, zeros, caps, rates next to 1 and marginals that
    underflow included.
    """
    assert drafts(problem, "water-level") == drafts(problem, "greedy")


@pytest.mark.parametrize("cap", [0, 7])
@pytest.mark.parametrize("per_client", [0.1, 1, 4.5, 100])
def test_same_plan_for_many_clients(per_client: float, cap: int) -> None:
    """Tests that plan and objective are those of greedy, and of sorting all marginals, for 1000
    clients.
    """
    problem = generate(
        "draft-allocation/uniform", clients=1000, budget=int(1000 * per_client), cap=cap, seed=3
    )
    found = drafts(problem, "water-level")
    assert found == drafts(problem, "greedy")
    if per_client < 100:
        assert found == naive.by_sorting(problem.to_dict())


def uncertain(weights: Floats, rates: Floats, budget: int, caps: Ints | None, out: Ints) -> None:
    """Check that an allocation is optimal from its marginals alone: no token left out beats one
    that is in.
    """
    limit = np.full(len(out), budget) if caps is None else np.minimum(caps, budget)
    with np.errstate(under="ignore"):
        inside = np.where(out > 0, weights * np.power(rates, out), np.inf)
        outside = np.where(out < limit, weights * np.power(rates, out + 1.0), 0.0)
    assert (out >= 0).all() and (out <= limit).all()
    total = sum(out.tolist())
    if total < budget:
        assert outside.max() <= 1e-300 * weights.max()
    else:
        assert total == budget
        assert outside.max() <= inside.min() * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_corners(seed: int) -> None:
    """Tests that 10,000 clients of wild rates, weights, caps, budgets to 10^15 are optimal, in 0.1
    s of processor.
    """
    rng = np.random.default_rng(seed)
    count = 10_000
    kinds: list[Callable[[], Any]] = [
        lambda: np.full(count, 0.7),
        lambda: np.full(count, 1 - 2.0**-53),
        lambda: 1 - 10.0 ** -rng.integers(1, 16, count),
        lambda: rng.uniform(0, 1, count),
        lambda: 10.0 ** rng.uniform(-300, -1e-9, count),
        lambda: rng.choice(NEXT_TO_1, count),
    ]
    rates = kinds[seed % 6]()
    weights = (np.ones(count), rng.uniform(0, 1, count), 10.0 ** rng.uniform(-300, 0, count))[
        seed % 3
    ]
    out = np.empty(count, np.int64)
    for budget in (1, count - 1, 4 * count + count // 2, 10**9 + 7, 10**15):
        for caps in (None, rng.integers(0, 9, count), rng.integers(0, 10**9, count)):
            fast.allocate(weights, rates, budget, caps, out)
            uncertain(weights, rates, budget, caps, out)


@given(
    st.one_of(st.floats(1e-300, 1.0), st.just(1.0)),
    st.one_of(st.floats(1e-9, 0.999999), st.sampled_from(NEXT_TO_1)),
    st.floats(2.3e-308, 1.0),
    st.integers(0, 2**50),
)
def test_counts_are_exact(weight: float, rate: float, level: float, most: int) -> None:
    """Tests that a count separates the products above the level from the others."""
    count = above(weight, rate, level, 0, most)
    assert 0 <= count <= most
    assert count == 0 or weight * rate**count > level
    assert count == most or not weight * rate ** (count + 1) > level


@pytest.mark.parametrize("most", [[10**9] * 5, [3, 10**9, 2, 50, 10**9]])
@pytest.mark.parametrize("budget", [1, 9, 400, 10**8])
def test_the_level_is_that_of_the_budget(most: list[int], budget: int) -> None:
    """Tests that as many marginals exceed the level as there are tokens, but for half a token per
    client.
    """
    log_w, log_a = np.log([1.0, 0.2, 0.6, 1e-3, 0.5]), np.log([0.3, 0.5, 0.7, 0.9, 0.99])
    x = find_level(log_w, -1.0 / log_a, np.array(most), budget)
    above_it = np.clip(np.floor((x - log_w) / log_a), 0, most)  # w a^n > e^x
    assert abs(above_it.sum() - budget) <= 3.0


def test_a_million_clients() -> None:
    """Tests that a million clients are allocated optimally, by the default method."""
    problem = generate("draft-allocation/uniform", clients=1_000_000, budget=4_000_000)
    result = solve(problem)
    assert result.by == "auto (water-level)"
    assert result.status is Status.OPTIMAL
    uncertain(
        problem.weights,
        problem.acceptance_rates,
        problem.budget_tokens,
        None,
        result.plan.draft_tokens,
    )
