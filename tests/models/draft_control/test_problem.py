"""The judge of draft control against exact rational arithmetic, and what the problem refuses."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import draft_control as naive

from specopt import (
    DraftChoice,
    DraftControlPlan,
    DraftControlProblem,
    InvalidInput,
    generate,
)
from specopt.kinds.draft_control.strategies import problems as draft_controls

BASE: dict[str, Any] = {
    "format": "specopt/1",
    "kind": "draft-control",
    "vocabulary_size": 8,
    "draft_seconds_per_token": 0.25,
    "verify_seconds": 1.0,
    "draft_lengths": [0, 4],
    "resolutions": [3, 1],
    "states": [
        {"uplink_bits_per_second": 10.0, "acceptance_rates": [0.75, 0.5]},
        {
            "uplink_bits_per_second": 20.0,
            "downlink_bits_per_second": 4.0,
            "acceptance_rates": [0.5, 0.25],
        },
    ],
    "transition": [[0.5, 0.5], [1.0, 0.0]],
}


def problem(**fields: Any) -> DraftControlProblem:
    """A problem of two states, with some fields replaced."""
    return DraftControlProblem.from_dict(BASE | fields)


def plan(*policy: tuple[int, int]) -> DraftControlPlan:
    """A plan of (draft length, resolution) pairs."""
    return DraftControlPlan(
        policy=tuple(DraftChoice(draft_length=L, resolution=r) for L, r in policy)
    )


@given(draft_controls(longest=5), st.data())
def test_judge_equals_naive(problem: DraftControlProblem, data: st.DataObject) -> None:
    """Tests that the objective of any policy is the oracle's, and that it is what its terms sum
    to.
    """
    able = st.sampled_from(naive.actions(problem.to_dict()))
    policy = data.draw(st.lists(able, min_size=len(problem.states), max_size=len(problem.states)))
    evaluation = problem.evaluate(plan(*policy))
    assert evaluation.objective == pytest.approx(
        float(naive.objective(problem.to_dict(), policy)), rel=1e-12
    )
    assert sum(evaluation.terms.values()) == pytest.approx(evaluation.objective, rel=1e-14)
    assert problem.violations(plan(*policy)) == []


def test_by_hand() -> None:
    """Tests that an iteration in both states, and the rate, with shares 2/3 and 1/3, are those
    worked out by hand.
    """
    at = problem()
    first = DraftChoice(draft_length=2, resolution=3)
    second = DraftChoice(draft_length=3, resolution=1)
    # V = 8: 3 bits per token; C(10, 7) = 120 points: 7 bits; C(8, 7) = 8 points: 3 bits
    assert at.iteration_seconds(0, first) == 2 * 0.25 + 2 * (3 + 7) / 10 + 1
    assert at.iteration_seconds(1, second) == 3 * 0.25 + 3 * (3 + 3) / 20 + 1 + (2 + 3) / 4
    assert at.iteration_tokens(0, first) == 1 + 0.75 + 0.75**2
    assert at.iteration_tokens(1, second) == 1 + 0.25 + 0.25**2 + 0.25**3
    rate = (2 * 2.3125 + 1.328125) / (2 * 3.5 + 3.9)
    assert at.evaluate(plan((2, 3), (3, 1))).objective == pytest.approx(rate, rel=1e-14)
    assert at.stationary_distribution == pytest.approx([2 / 3, 1 / 3], rel=1e-15)


def test_myopic_and_optimal_policies_of_the_alternating_link() -> None:
    """Tests that the counterexample to Eq. 13 has 16 + 1038 bits per draft, and its three policies
    their rates.
    """
    at = generate("draft-control/alternating")
    assert isinstance(at, DraftControlProblem)
    assert at.distribution_bits(at.states[0]) == [1038.0]
    for lengths, rate in (((6, 23), 40.29), ((1, 28), 45.17), ((0, 28), 45.59)):
        found = at.evaluate(plan(*((L, 100) for L in lengths))).objective
        assert found == pytest.approx(rate, abs=0.005)


def test_terms() -> None:
    """Tests that the terms are the server's own tokens and the accepted drafts: 1.75 tokens in 1 +
    0.25 + 0.9 s.
    """
    one = problem(states=BASE["states"][:1], transition=[[1.0]])
    evaluation = one.evaluate(plan((1, 3)))
    seconds = one.iteration_seconds(0, plan((1, 3)).policy[0])
    assert evaluation.terms == pytest.approx(
        {
            "own_tokens_per_second": 1.0 / seconds,
            "accepted_draft_tokens_per_second": 0.75 / seconds,
        },
        rel=1e-15,
    )


@pytest.mark.parametrize(
    ("count", "end"), [(4, r"states \[0\] and \[1\] and \[2\] and \[3\]"), (6, r"\[3\] and 2 more")]
)
def test_many_recurrent_classes(count: int, end: str) -> None:
    """Tests that of many recurrent classes four are shown, and the others counted."""
    with pytest.raises(
        InvalidInput, match=rf"expected exactly one recurrent class, got {count}: .*{end}$"
    ):
        problem(states=BASE["states"][:1] * count, transition=np.eye(count).tolist())


def test_violations() -> None:
    """Tests that a draft length outside the range is a violation, and what is no plan at all is
    refused.
    """
    at = problem(draft_lengths=[1, 2])
    assert at.violations(plan((0, 3), (3, 1))) == [
        "policy[0].draft_length: expected 1 to 2, got 0",
        "policy[1].draft_length: expected 1 to 2, got 3",
    ]
    assert at.evaluate(plan((0, 3), (3, 1))).objective > 0
    for wrong, message in (
        (plan((1, 3)), "policy: expected 2 entries, one per state, got 1"),
        (plan((1, 3), (1, 2)), "policy[1].resolution: expected one of 3, 1, got 2"),
    ):
        assert at.violations(wrong) == [message]
        with pytest.raises(InvalidInput, match=f"^{re.escape(message)}$"):
            at.evaluate(wrong)


def test_verification_by_length() -> None:
    """Tests that each draft length has its own seconds, that none has more than are given, and that
    they are kept.
    """
    at = problem(verify_seconds=[1.0, 2.0, 3.0, 5.0, 4.0])
    same = problem(verify_seconds=4.0)
    assert at.iteration_seconds(0, plan((4, 3)).policy[0]) == same.iteration_seconds(
        0, plan((4, 3)).policy[0]
    )
    assert at.iteration_seconds(0, plan((0, 3)).policy[0]) == 1.0
    message = "policy[1].draft_length: expected at most 4, the last length in verify_seconds, got 5"
    assert at.violations(plan((0, 3), (5, 1))) == [message]
    with pytest.raises(InvalidInput, match=f"^{re.escape(message)}$"):
        at.evaluate(plan((0, 3), (5, 1)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"draft_lengths": [1]}, "draft_lengths: expected array of length 2, got [1]"),
        (
            {"draft_lengths": [3, 2]},
            "draft_lengths: expected [min, max] with min <= max, got [3, 2]",
        ),
        ({"resolutions": [3, 3]}, "resolutions[1]: expected distinct resolutions, got 3 twice"),
        (
            {"resolutions": [3]},
            "states[0].acceptance_rates: expected 1 entries, as in resolutions, got 2",
        ),
        (
            {"states": BASE["states"][:1]},
            "transition: expected 1 rows, one per state, got 2",
        ),
        (
            {"distribution_code": "support"},
            (
                "states[0].distribution_bits: expected 2 entries, got none; they are"
                ' required for the distribution code "support"'
            ),
        ),
        (
            {"transition": [[1.0, 0.0], [0.0, 1.0]]},
            "transition: expected exactly one recurrent class, got 2: states [0] and [1]",
        ),
        (
            {"draft_lengths": [0, 2], "verify_seconds": 0.0},
            (
                "verify_seconds: expected a number > 0, got 0.0; an iteration without drafts"
                " would take no time in states[0]"
            ),
        ),
        (
            {"draft_lengths": [0, 2], "verify_seconds": [0.0, 1.0, 1.0]},
            (
                "verify_seconds: expected a number > 0, got 0.0; an iteration without drafts"
                " would take no time in states[0]"
            ),
        ),
        (
            {"verify_seconds": [1.0] * 4},
            "verify_seconds: expected one number, or 5 numbers for drafts of 0 to 4 tokens, got 4",
        ),
        ({"verify_seconds": []}, "verify_seconds: expected at least one number, got none"),
        (
            {"transition": [[0.5, 0.6], [1.0, 0.0]]},
            "transition[0]: expected probabilities that sum to 1 within 1e-09",
        ),
    ],
)
def test_refusals(fields: dict[str, Any], message: str) -> None:
    """Tests that what breaks the contract is refused by the name of the field."""
    with pytest.raises(InvalidInput, match=f"^{re.escape(message)}"):
        problem(**fields)


def test_objects_are_checked_too() -> None:
    """Tests that problem and plan made in Python are checked as files are."""
    with pytest.raises(InvalidInput, match=r"policy\[0\]: expected a DraftChoice, got \(1, 2\)"):
        DraftControlPlan(policy=((1, 2),))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="draft_length: expected int >= 0, got -1"):
        DraftChoice(draft_length=-1, resolution=1)
    with pytest.raises(InvalidInput, match=r"states\[1\]: expected a ChannelState, got None"):
        dataclasses.replace(problem(), states=(problem().states[0], None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"acceptance_rates": [0.5]},
            "acceptance_rates: expected 2 entries, as in resolutions, got 1",
        ),
        (
            {"distribution_bits": [1.0, 1.0, 1.0]},
            "distribution_bits: expected 2 entries, as in acceptance_rates, got 3",
        ),
        (
            {"uplink_bits_per_second": 3e-308},
            ("uplink_bits_per_second: the time of an iteration must be finite and > 0, got 1.0"),
        ),
    ],
)
def test_states_are_checked(fields: dict[str, Any], message: str) -> None:
    """Tests that a state that breaks the contract is refused by its index and field."""
    states = [BASE["states"][0], {**BASE["states"][0], **fields}]
    with pytest.raises(InvalidInput, match=f"^{re.escape('states[1].' + message)}"):
        problem(states=states)


def test_support_code_takes_the_bits_of_the_state() -> None:
    """Tests that the code decides which bits count, and that bits may be given and not used."""
    states = [{**state, "distribution_bits": [2.5, 0.0]} for state in BASE["states"]]
    choice = DraftChoice(draft_length=2, resolution=3)
    assert (
        problem(states=states).iteration_seconds(0, choice)
        == problem().iteration_seconds(0, choice)
        == 3.5
    )
    assert (
        problem(states=states, distribution_code="support").iteration_seconds(0, choice)
        == 0.5 + 1.1 + 1
    )
