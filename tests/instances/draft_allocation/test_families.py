"""Generated problems of draft allocation."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from helpers.families import problem_of

from specopt import DraftAllocationProblem

make = partial(problem_of, DraftAllocationProblem)


def test_uniform() -> None:
    """Tests that the draws keep their ranges."""
    problem = make(
        "uniform",
        clients=5000,
        budget=7,
        min_acceptance=0.2,
        max_acceptance=0.8,
        weight_spread=10,
        cap=6,
    )
    assert problem.clients == 5000
    assert problem.budget_tokens == 7
    assert problem.acceptance_rates.min() >= 0.2 and problem.acceptance_rates.max() <= 0.8
    assert problem.acceptance_rates.mean() == pytest.approx(0.5, abs=0.01)
    assert problem.weights.min() >= 1 and problem.weights.max() <= 10
    assert np.log10(problem.weights).mean() == pytest.approx(0.5, abs=0.02)
    assert problem.max_draft_tokens is not None
    assert (problem.max_draft_tokens.min(), problem.max_draft_tokens.max()) == (1, 6)
    assert make("uniform").max_draft_tokens is None


def test_table_1() -> None:
    """Tests that the paper's sizes and budgets are offered, and weights are one over the goodput of
    the even split.
    """
    for clients, budgets in ((4, (24, 28)), (8, (16, 20))):
        for budget in budgets:
            problem = make("paper-5", clients=clients, budget=budget, rates="wide")
            assert problem.clients == clients
            assert problem.budget_tokens == budget
            assert (problem.acceptance_rates[0], problem.acceptance_rates[-1]) == (0.3, 0.95)
            goodput = sum(problem.acceptance_rates**n for n in range(budget // clients + 1))
            assert problem.weights * goodput == pytest.approx(np.ones(clients))
