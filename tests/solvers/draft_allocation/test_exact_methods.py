"""Every exact method against exhaustive enumeration in rational numbers."""

from __future__ import annotations

import pytest
from helpers.untyped import solve
from hypothesis import given
from oracles import draft_allocation as naive

from specopt import DraftAllocationProblem, Status
from specopt.kinds.draft_allocation.strategies import problems
from specopt.solvers.draft_allocation import METHODS
from specopt.solvers.method import Method

EXACT = [method for method in METHODS if method.exact]


@pytest.mark.parametrize("method", EXACT, ids=lambda method: method.name)
@given(problem=problems(clients=(1, 4), budget=(0, 7)))
def test_equals_the_optimum(method: type[Method], problem: DraftAllocationProblem) -> None:
    """Tests that every method finds and proves the optimum: `milp` to its tolerance, the others
    exactly.
    """
    optimum = float(naive.optimum(problem.to_dict()))
    result = solve(problem, method.name)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(
        optimum, rel=method.tolerance if method.name == "milp" else 1e-12
    )
    assert (
        optimum * (1 - 1e-12) <= result.bound <= problem.widened(optimum) * (1 + method.tolerance)
    )
    assert problem.violations(result.plan) == []
