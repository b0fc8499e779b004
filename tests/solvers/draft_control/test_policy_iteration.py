"""Policy iteration against all policies in rational arithmetic, its certificate, and what never
hurts an optimum.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from oracles import draft_control as naive

from specopt import DraftControlPlan, DraftControlProblem, Result, Status, generate, solve
from specopt.kinds.draft_control.strategies import problems as draft_controls


def lengths(result: Result) -> list[int]:
    """The draft lengths of a result's policy."""
    assert isinstance(result.plan, DraftControlPlan)
    return [choice.draft_length for choice in result.plan.policy]


def rate(problem: DraftControlProblem) -> float:
    """The optimal rate."""
    result = solve(problem)
    assert result.status is Status.OPTIMAL and result.objective is not None
    return result.objective


def changed(problem: DraftControlProblem, **fields: Any) -> DraftControlProblem:
    """The problem with fields of its JSON form replaced."""
    return DraftControlProblem.from_dict(problem.to_dict() | fields)


@given(draft_controls())
def test_the_certificate_is_rounding(problem: DraftControlProblem) -> None:
    """Tests that the price of a second is the rate, that it solves the optimality equation, and
    that means give it.
    """
    result = solve(problem, "policy-iteration")
    assert result.stats["price"] == pytest.approx(result.objective, rel=1e-12)
    assert abs(result.stats["mean_violation"]) <= 1e-12
    mean = result.stats["tokens_per_iteration"] / result.stats["seconds_per_iteration"]
    assert mean == pytest.approx(result.objective, rel=1e-12)


def test_the_alternating_link() -> None:
    """Tests that on a link that is slow and fast by turns the slow iteration is cut short, unlike
    by Eq. 13.
    """
    result = solve(generate("draft-control/alternating"))
    assert result.by == "auto (policy-iteration)"
    assert lengths(result) == [1, 28]
    assert result.objective == pytest.approx(45.17, abs=0.005)
    assert lengths(solve(generate("draft-control/alternating"), "myopic")) == [6, 23]
    without = solve(generate("draft-control/alternating", min_draft=0))
    assert lengths(without) == [0, 28]
    assert without.objective == pytest.approx(45.59, abs=0.005)


def test_transient_states_choose_well_too() -> None:
    """Tests that a state that is left for ever takes the action that is worth most at the price of
    the others.
    """
    problem = generate("draft-control/alternating", min_draft=0)
    assert isinstance(problem, DraftControlProblem)
    data = problem.to_dict()
    left = {"uplink_bits_per_second": 1e6, "acceptance_rates": [0.8]}
    problem = changed(
        problem,
        states=[*data["states"], left],
        transition=[[0, 1, 0], [1, 0, 0], [0.25, 0.25, 0.5]],
    )
    result = solve(problem)
    assert result.objective == pytest.approx(45.59, abs=0.005)
    price, able = result.stats["price"], naive.actions(problem.to_dict())
    worth = {
        a: float(naive.tokens(problem.to_dict(), 2, a))
        - price * float(naive.seconds(problem.to_dict(), 2, a))
        for a in able
    }
    assert lengths(result)[2] == max(able, key=lambda a: worth[a])[0] > 0


@pytest.mark.parametrize("weak", [1e-7, 1e-11, 1e-14])
def test_chains_that_hardly_mix(weak: float) -> None:
    """Tests that optimum and bound are right where a linear system loses its digits."""
    problem = generate(
        "draft-control/random", states=4, resolutions=1, min_draft=0, max_draft=3, seed=3
    )
    rows = [
        [0.5, 0.5 - weak, weak, 0],
        [0.25, 0.75, 0, 0],
        [0, 3 * weak, 0.5, 0.5 - 3 * weak],
        [0, 0, 0.75, 0.25],
    ]
    assert isinstance(problem, DraftControlProblem)
    problem = changed(problem, transition=rows)
    price = naive.optimum_by_price(
        problem.to_dict(), naive.completed(problem.transition.scaled.tolist())
    )
    result = solve(problem)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(float(price), rel=1e-12)


@settings(max_examples=40)
@given(draft_controls(states=(1, 3)))
def test_bounds_and_baselines(problem: DraftControlProblem) -> None:
    """Tests that every method's bound is at least the optimum, and the optimum at least every
    method's rate.
    """
    best = float(naive.optimum(problem.to_dict()))
    for method in ("policy-iteration", "decoupled", "linear-program", "myopic", "best-static"):
        result = solve(problem, method)
        assert result.bound is not None and result.objective is not None
        assert result.bound >= best * (1 - 1e-12)
        assert result.bound == pytest.approx(best, rel=1e-6 if method == "linear-program" else 1e-9)
        assert result.objective <= best * (1 + 1e-12)
