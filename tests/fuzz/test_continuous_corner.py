"""Bounds on plans of continuous serving where lengths are reached to rounding, against all plans
and a second judge.

By default problems 0 to 249; `numbered` says how others are chosen.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from fuzz.continuous_corner import corner_problem
from fuzz.numbered import check_all, numbered
from oracles import continuous_serving as naive
from oracles.serving_latency import upload_need

from specopt import ContinuousServingProblem, Status, load, methods, solve

DATA = Path(__file__).parents[1] / "data" / "edges"


def check(problem: ContinuousServingProblem) -> None:
    """Hold what the methods say of a problem against all of its plans; shares of arrivals are equal
    ones there.
    """
    data = problem.to_dict()
    apart = problem.arrival_seconds is not None
    least = math.inf
    for mechanism in problem.mechanisms:
        need = upload_need(data, mechanism)
        share = [1 / len(need) if apart else one / sum(need) for one in need]
        least = min(least, naive.least(data, mechanism, share))
    for method in methods(problem):
        found = solve(problem, method.name)
        if found.status is Status.INFEASIBLE:
            assert least == math.inf, f"{method.name} finds no plan, but one has {least!r}"
            continue
        assert found.bound is not None and found.objective is not None
        assert found.bound <= least, (
            f"{method.name} bounds by {found.bound!r}, but a plan has {least!r}"
        )
        assert apart or least <= found.objective * (1 + 1e-12)
        if method.exact:
            assert found.status is Status.OPTIMAL
            assert found.objective <= least * (1 + 1e-12)


@pytest.mark.parametrize(
    "path", sorted(DATA.glob("continuous-serving-*.json")), ids=lambda path: path.stem
)
def test_bound_below_the_least_plan(path: Path) -> None:
    """Tests that no plan lies below a bound in problems where one did: steps of 2 - 1e-13 tokens,
    outputs of two.
    """
    problem = load(str(path))
    assert isinstance(problem, ContinuousServingProblem)
    check(problem)


@pytest.mark.nightly
@numbered(250, chunk=125)
def test_bounds_below_all_plans(numbers: range) -> None:
    """Tests that bound <= optimum <= every plan, the optimum by enumeration with another judge."""
    check_all(
        numbers,
        lambda number: check(ContinuousServingProblem.from_dict(corner_problem(number))),
        corner_problem,
    )
