"""Policy iteration: its certificate, the alternating link, and transient states."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.untyped import generate, solve
from hypothesis import given
from oracles import draft_control as naive

from specopt import DraftControlProblem
from specopt.kinds.draft_control.strategies import problems as draft_controls


def lengths(result: Any) -> list[int]:
    """The draft lengths of a result's policy."""
    return [choice.draft_length for choice in result.plan.policy]


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
    data = generate("draft-control/alternating", min_draft=0).to_dict()
    left = {"uplink_bits_per_second": 1e6, "acceptance_rates": [0.8]}
    data |= {
        "states": [*data["states"], left],
        "transition": [[0, 1, 0], [1, 0, 0], [0.25, 0.25, 0.5]],
    }
    result = solve(DraftControlProblem.from_dict(data))
    assert result.objective == pytest.approx(45.59, abs=0.005)
    price, able = result.stats["price"], naive.actions(data)
    worth = {
        a: float(naive.tokens(data, 2, a)) - price * float(naive.seconds(data, 2, a)) for a in able
    }
    assert lengths(result)[2] == max(able, key=lambda a: worth[a])[0] > 0
