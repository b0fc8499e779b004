"""Families of fair goodput: Table I of paper 5, and synthetic clients in real time."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.families import problem_of

from specopt import FairGoodputProblem


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("equal", 0.75, 0.75), ("mild", 0.6, 0.9), ("wide", 0.3, 0.95), ("extreme", 0.05, 0.98)],
)
@pytest.mark.parametrize(("clients", "budget"), [(4, 24), (4, 28), (8, 16), (8, 20)])
def test_table_1(clients: int, budget: int, name: str, low: float, high: float) -> None:
    """Tests that sizes and budgets are those of Table I, the rates evenly spaced."""
    problem = problem_of(FairGoodputProblem, "paper-5", clients=clients, budget=budget, rates=name)
    assert problem.budget_tokens == budget
    assert problem.acceptance_rates == pytest.approx(np.linspace(low, high, clients))
    assert problem.per == "round" and problem.fairness == 1.0


def test_per_second_draws() -> None:
    """Tests that the clients' times lie in their ranges."""
    problem = problem_of(FairGoodputProblem, "per-second", clients=500, budget=100, seed=1)
    assert problem.per == "second"
    for column, low, high in (
        (problem.draft_seconds_per_token, 0.005, 0.04),
        (problem.network_seconds, 0.005, 0.06),
    ):
        assert column is not None
        assert low <= column.min() and column.max() <= high
        assert column.mean() == pytest.approx((low + high) / 2, rel=0.1)
    assert (problem.verify_overhead_seconds, problem.verify_seconds_per_token) == (0.03, 0.0002)
