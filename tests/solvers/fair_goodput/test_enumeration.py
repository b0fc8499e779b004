"""All integer allocations: the oracle of the other methods, per round and per second."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from oracles import fair_goodput as naive

from specopt import FairGoodputPlan, FairGoodputProblem, Status, generate, solve
from specopt.solvers.fair_goodput.enumeration import Enumeration, allocations
from specopt.testing.strategies.fair_goodput import problems as fair_goodputs


@settings(max_examples=40)
@given(fair_goodputs(clients=(1, 3), budget=(0, 5), least=True))
def test_agrees_with_the_default_method(problem: FairGoodputProblem) -> None:
    """Tests that enumeration, per round and per second, finds the optimum of the default method within 1e-6."""
    best, other = solve(problem), solve(problem, "enumeration")
    if best.status is Status.INFEASIBLE:
        assert other.status is Status.INFEASIBLE
        return
    assert best.status is Status.OPTIMAL
    assert other.gap is not None and other.gap <= 1e-5  # rates are less accurate than their utility
    assert best.objective is not None and other.objective is not None and other.bound is not None
    scale = max(1.0, abs(best.objective))
    assert abs(best.objective - other.objective) <= 1e-6 * scale
    assert other.bound >= best.objective - 1e-8 * scale
    assert isinstance(other.plan, FairGoodputPlan)
    assert naive.certificate(problem.to_dict(), other.plan.to_dict()["schedule"]) <= 1e-5 * scale


def test_every_allocation_once() -> None:
    """Tests that allocations within budget and caps are complete: as many as there are, none twice."""
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
        == "it has more than 3,000 allocations, the method takes at most 3,000 allocations"
    )


def test_the_region_by_its_definition() -> None:
    """Tests that mixtures of allocations reach a point of the region that no single one does."""
    problem = FairGoodputProblem(acceptance_rates=np.array([0.5, 0.5]), budget_tokens=1)
    result = solve(problem, "enumeration")
    assert isinstance(result.plan, FairGoodputPlan)
    assert result.plan.goodput == pytest.approx([1.25, 1.25], rel=1e-5)
