"""All integer allocations: complete, limited in number, and mixed."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.untyped import generate, solve
from oracles import fair_goodput as naive

from specopt import FairGoodputProblem
from specopt.solvers.fair_goodput.enumeration import Enumeration, allocations


def test_every_allocation_once() -> None:
    """Tests that allocations within budget and caps are complete: as many as there are, none
    twice.
    """
    problem = FairGoodputProblem(
        acceptance_rates=np.full(3, 0.5), budget_tokens=4, max_draft_tokens=np.array([9, 1, 2])
    )
    found = list(allocations(problem))
    assert sorted(found) == sorted(naive.allocations([4, 1, 2], 4))
    assert len(set(found)) == len(found)


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
