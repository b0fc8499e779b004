"""Every exact method against the linear program over all integer allocations."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import fair_goodput as naive

from specopt import FairGoodputPlan, Status, solve
from specopt.kinds.fair_goodput.strategies import problems
from specopt.solvers.fair_goodput import METHODS
from specopt.solvers.method import Method

EXACT = [method for method in METHODS if method.exact]

ROUNDING = {"convex": 1e-5, "enumeration": 1e-5}
"""Accuracy of rates from methods that leave a program to a solver: utilities are more accurate, by
their square.
"""

SUMS = problems(clients=(1, 4), budget=(0, 6), per=("second",)).map(
    lambda one: dataclasses.replace(one, fairness=0.0)
)
"""Weighted sums of rates per second, the only problems that `threshold-greedy` accepts."""


@pytest.mark.parametrize("method", EXACT, ids=lambda method: method.name)
@given(data=st.data())
def test_equals_the_optimum(method: type[Method], data: st.DataObject) -> None:
    """Tests that no mixture of allocations is better than the plan, that bounds hold, and when
    nothing is feasible.
    """
    drawn = (
        SUMS
        if method.name == "threshold-greedy"
        else problems(clients=(1, 4), budget=(0, 6), least=True)
    )
    problem = data.draw(drawn.filter(lambda one: method().refusal(one) is None))
    result = solve(problem, method.name)
    if result.status is Status.INFEASIBLE:
        assert solve(problem, "enumeration").status is Status.INFEASIBLE
        return
    assert isinstance(result.plan, FairGoodputPlan) and result.objective is not None
    scale = max(1.0, abs(result.objective))
    left = naive.certificate(problem.to_dict(), result.plan.to_dict()["schedule"])
    assert left <= ROUNDING.get(method.name, 1e-8) * scale
    assert result.gap is not None and result.gap <= ROUNDING.get(method.name, 1e-8)
    other = solve(problem, "enumeration")
    assert other.objective is not None and result.bound is not None
    assert abs(result.objective - other.objective) <= 1e-6 * scale
    assert result.bound >= other.objective - 1e-8 * scale
