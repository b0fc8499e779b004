"""Utilities of every steepness: proven optimal, by bounds that other routes confirm, in every
unit.
"""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from helpers.fair_goodput_corners import as_steep
from helpers.units import in_other_seconds, in_other_worth
from helpers.untyped import solve
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import fair_goodput as naive

from specopt import FairGoodputPlan, FairGoodputProblem, InvalidInput, Status
from specopt.kinds.fair_goodput.strategies import problems as fair_goodputs

FAIRNESS = [0.0, 0.3, 1.0, 1.5, 4.0, 12.0, 20.0, 40.0, 100.0]


def lack(problem: FairGoodputProblem, plan: FairGoodputPlan) -> float:
    """What the best allocation is worth more than a plan at its own prices, by the oracle's
    columns.
    """
    form = problem.to_dict()
    x = np.array(naive.played(form, plan.to_dict()["schedule"])[0])
    logarithms = np.log(problem.weight) - problem.fairness * np.log(x)
    prices = np.exp(logarithms - logarithms.max())
    return float((prices @ naive.columns(form)).max() / (prices @ x)) - 1.0


@pytest.mark.parametrize("fairness", FAIRNESS)
@settings(max_examples=25)
@given(problem=fair_goodputs(clients=(1, 4), budget=(0, 5)))
def test_small_problems_are_proven(fairness: float, problem: FairGoodputProblem) -> None:
    """Tests that the optimum of small problems is proven, and that the oracle's columns confirm the
    plan.
    """
    problem = as_steep(problem, fairness)
    result = solve(problem)
    assert result.status is Status.OPTIMAL
    assert result.gap == 0.0
    assert result.bound >= result.objective
    assert fairness <= 1.0 or result.bound < 0.0
    assert lack(problem, result.plan) <= 2e-9


@pytest.mark.parametrize("fairness", FAIRNESS)
@settings(max_examples=5)
@given(problem=fair_goodputs(clients=(1, 3), budget=(0, 4)))
def test_no_bound_is_below_what_another_method_finds(
    fairness: float, problem: FairGoodputProblem
) -> None:
    """Tests that the bounds of all exact methods are above the plans of the others, to their
    tolerances.
    """
    problem = as_steep(problem, fairness)
    others = ["enumeration", "convex"] if problem.per == "round" else ["enumeration"]
    results = [solve(problem), *(solve(problem, name) for name in others)]
    assert all(result.status is Status.OPTIMAL for result in results)
    for one in results:
        for other in results:
            assert one.bound >= other.objective or problem.gap(other.objective, one.bound) <= 1e-9


@pytest.mark.parametrize("fairness", FAIRNESS)
@settings(max_examples=10)
@given(
    problem=fair_goodputs(clients=(1, 4), budget=(0, 5)),
    factor=st.sampled_from([1e-12, 1e-6, 1e6, 1e12]),
    change=st.sampled_from([in_other_seconds, in_other_worth]),
)
def test_units_change_no_verdict(
    fairness: float, problem: FairGoodputProblem, factor: float, change: object
) -> None:
    """Tests that seconds and weights in other units change neither status nor gap, at every
    steepness.
    """
    assert callable(change)
    problem = as_steep(problem, fairness)
    other = None
    with contextlib.suppress(InvalidInput):
        other = change(problem, factor)
    assume(other is not None)
    assert isinstance(other, FairGoodputProblem)
    ours, theirs = solve(problem), solve(other)
    assert theirs.status is ours.status
    assert theirs.gap == ours.gap == 0.0
