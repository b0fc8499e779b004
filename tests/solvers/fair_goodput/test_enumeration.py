"""All integer allocations: limited in number, and mixed."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.untyped import generate, solve

from specopt import FairGoodputProblem
from specopt.solvers.fair_goodput.enumeration import Enumeration


def test_large_problems_are_refused() -> None:
    """Tests that more allocations than it can mix are refused before they are counted in full."""
    problem = generate("fair-goodput/paper-5", clients=8, budget=20)
    assert (
        Enumeration().refusal(problem)
        == "it has more than 3,000 allocations, but the method accepts at most 3,000 allocations"
    )


def test_the_region_by_its_definition() -> None:
    """Tests that mixtures of allocations reach a point of the region that no single one does."""
    problem = FairGoodputProblem(acceptance_rates=np.array([0.5, 0.5]), budget_tokens=1)
    result = solve(problem, "enumeration")
    assert result.plan.goodput == pytest.approx([1.25, 1.25], rel=1e-5)
