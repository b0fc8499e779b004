"""Every exact method against the linear program over all integer allocations."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from helpers.untyped import solve
from hypothesis import given
from hypothesis import strategies as st
from oracles import fair_goodput as naive

from specopt import FairGoodputProblem, Status
from specopt.kinds.fair_goodput.strategies import problems
from specopt.solvers.fair_goodput import METHODS
from specopt.solvers.fair_goodput.dual import Dual
from specopt.solvers.method import Method

EXACT = [method for method in METHODS if method.exact]

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
        else problems(clients=(1, 4), budget=(0, 6), minimum=True)
    )
    compare(data.draw(drawn.filter(lambda one: method().refusal(one) is None)), method)


@pytest.mark.parametrize(
    ("rates", "budget", "least"),
    [
        ([1.5e-9, 0.9, 1.5e-9], 3, [1 + 3e-9, 1.9, 1 - 3e-9]),
        ([1.5e-9, 0.9], 1, [1 + 1e-9, 1.0]),
        ([0.25, 0.25, 0.0, 0.0], 2, [1.1875, 1.1875, 0.0, 1.0]),
    ],
)
def test_least_rates_next_to_rates_without_drafts(
    rates: list[float], budget: int, least: list[float]
) -> None:
    """Tests that least rates that a few thousand millionths of a draft, or the last digit, decide
    are met, or not, as the oracle says.
    """
    problem = FairGoodputProblem(
        acceptance_rates=np.array(rates), budget_tokens=budget, min_goodput=np.array(least)
    )
    compare(problem, Dual)


def compare(problem: FairGoodputProblem, method: type[Method]) -> None:
    """Compare a method with the oracle and with all integer allocations."""
    result, form = solve(problem, method.name), problem.to_dict()
    short, doubt = naive.shortage(form)
    if result.status is Status.INFEASIBLE:
        assert short > -doubt
        return
    assert short <= doubt
    scale = max(1.0, abs(result.objective))
    left = naive.certificate(form, result.plan.to_dict()["schedule"])
    # Rates of `convex` are less accurate than utilities, which change by the square.
    rounding = 1e-5 if method.name == "convex" else 1e-8
    assert left <= rounding * scale and result.gap <= rounding
    other = solve(problem, "enumeration")
    assert abs(result.objective - other.objective) <= 1e-6 * scale
    assert result.bound >= other.objective - 1e-8 * scale


@pytest.mark.parametrize(
    ("rates", "budget", "least"),
    [
        ([1e-9, 0.0, 0.25], 4, [1 + 1.2e-9, 1.0, 0.0]),
        ([0.25, 1e-9, 0.0], 2, [1.0, 1 + 1.2e-9, 1 + 2.0**-52]),
    ],
)
def test_least_rates_that_only_the_tolerance_admits(
    rates: list[float], budget: int, least: list[float]
) -> None:
    """Tests that methods agree if the minimum rates are lowered to what some mixture reaches."""
    problem = FairGoodputProblem(
        acceptance_rates=np.array(rates), budget_tokens=budget, min_goodput=np.array(least)
    )
    objectives = [solve(problem, method).objective for method in ("dual", "enumeration")]
    assert objectives[1] == pytest.approx(objectives[0], abs=1e-6)
