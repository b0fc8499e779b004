"""The judge of draft stopping, against rounds enumerated one by one, and what it refuses."""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt import (
    DraftStoppingPlan,
    DraftStoppingProblem,
    InvalidInput,
    generate,
    simulate,
    solve,
)
from specopt.kinds.draft_stopping.strategies import problems as draft_stoppings
from specopt.models.draft_stopping.problem import STOP

ACCEPTED, REJECTED, AFTER = range(3)


def naive(problem: DraftStoppingProblem, plan: DraftStoppingPlan) -> float:
    """The objective in rational arithmetic: every class, every number of accepted tokens, every run
    of scores.
    """
    scores = [
        [Fraction(x) for x in law.tolist()]
        for law in (problem.scores.accepted, problem.scores.first_rejection, problem.scores.after)
    ]
    rows = plan.next.rows.tolist()
    most = problem.max_draft_tokens
    bins = problem.scores.bins
    accepted = drafted = beside = Fraction(0)
    cost = problem.to_dict()["round_seconds"]
    for share, rates in zip(
        problem.probabilities.tolist(), problem.acceptance_rates.tolist(), strict=True
    ):
        for right in range(most + 1):
            chance = Fraction(share)
            for rate in rates[:right]:
                chance *= Fraction(rate)
            if right < most:
                chance *= 1 - Fraction(rates[right])
            outcomes = [ACCEPTED] * right + [REJECTED] + [AFTER] * most
            for run in itertools.product(range(bins), repeat=most):
                weight, node, length = chance, plan.start, 0
                for position, score in enumerate(run):
                    weight *= scores[outcomes[position]][score]
                    if node != STOP:
                        length = length + 1
                        node = rows[node][score]
                accepted += weight * min(length, right)
                drafted += weight * length
                beside += weight * Fraction(cost[length] if isinstance(cost, list) else cost)
    seconds = beside + Fraction(problem.draft_seconds_per_token) * drafted
    return float((1 + accepted) / seconds)


@st.composite
def with_plans(draw: st.DrawFn) -> tuple[DraftStoppingProblem, DraftStoppingPlan]:
    """A problem and any plan that has no more nodes in a row than tokens."""
    problem = draw(draft_stoppings(max_tokens=4, max_bins=2))
    nodes = draw(st.integers(0, problem.max_draft_tokens))
    rows = [
        [draw(st.sampled_from([STOP, *range(node + 1, nodes)])) for _ in range(problem.scores.bins)]
        for node in range(nodes)
    ]
    return problem, DraftStoppingPlan.from_dict(
        {"start": draw(st.integers(STOP, nodes - 1)), "next": rows}
    )


@settings(max_examples=60)
@given(pair=with_plans())
def test_judge_equals_naive(pair: tuple[DraftStoppingProblem, DraftStoppingPlan]) -> None:
    """Tests that the judge's objective is that of all rounds, one by one, in rational arithmetic,
    and the sum of its terms.
    """
    problem, plan = pair
    assert problem.violations(plan) == []
    evaluation = problem.evaluate(plan)
    assert evaluation.objective == pytest.approx(naive(problem, plan), rel=1e-12)
    assert sum(evaluation.terms.values()) == pytest.approx(evaluation.objective, rel=1e-12)


def test_a_node_reached_at_two_depths() -> None:
    """Tests that acceptance follows the position, not the node, where two paths of different
    lengths meet.
    """
    problem: Any = generate("draft-stopping/random", classes=2, bins=2, max_draft=3, seed=4)
    plan = DraftStoppingPlan.from_dict({"start": 0, "next": [[1, 2], [2, 2], [-1, -1]]})
    assert problem.evaluate(plan).objective == pytest.approx(naive(problem, plan), rel=1e-12)


@pytest.mark.parametrize(
    ("start", "rows", "said"),
    [
        (0, [], "start: expected a node below 0 or -1, got 0"),
        (0, [[1, 0], [-1, -1]], "next[0][1]: expected -1 or a node from 1 to 1, got 0"),
        (0, [[1, 2], [-1, -1]], "next[0][1]: expected -1 or a node from 1 to 1, got 2"),
        (0, [[-1]], "next: expected 2 entries per row, one per score, got 1"),
        (
            0,
            [[1, 1], [2, 2], [3, -1], [4, 4], [-1, -1]],
            "next: a path drafts 5 tokens, but the maximum is 4",
        ),
    ],
)
def test_what_is_no_plan(start: int, rows: list[list[int]], said: str) -> None:
    """Tests that the judge says what is wrong with an automaton, and rates none that is wrong."""
    problem = generate("draft-stopping/paper-2", max_draft=4)
    plan = DraftStoppingPlan.from_dict({"start": start, "next": rows})
    assert problem.violations(plan) == [said]
    with pytest.raises(InvalidInput):
        problem.evaluate(plan)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"rounds": [{"probability": 0.5, "acceptance_rate": 0.5}]},
            "rounds.probability: expected probabilities that sum to 1, got a sum of 0.5",
        ),
        (
            {"rounds": [{"probability": 1.0, "acceptance_rate": [0.5, 0.5]}]},
            "rounds[0].acceptance_rate: expected 1 or max_draft_tokens = 8 numbers, got 2",
        ),
        (
            {"rounds": [{"probability": 1.0, "acceptance_rate": [0.5, True]}]},
            "rounds[0].acceptance_rate[1]: expected a number >= 0 and <= 1, got True",
        ),
        (
            {"scores": {"accepted": [1.0], "first_rejection": [0.9], "after": [1.0]}},
            "scores.first_rejection: expected probabilities that sum to 1, got a sum of 0.9",
        ),
        (
            {"scores": {"accepted": [1.0], "first_rejection": [0.5, 0.5], "after": [1.0]}},
            "scores.first_rejection: expected 1 entries, as in accepted, got 2",
        ),
        (
            {
                "scores": {
                    key: [1.0, *([0.0] * 1000)] for key in ("accepted", "first_rejection", "after")
                }
            },
            "scores.accepted: expected at most 1000 entries, got 1001",
        ),
        (
            {"round_seconds": 2.5e-308},
            "round_seconds: the times of rounds and the resulting rates must be finite; the"
            " shortest time is 2.5e-308 seconds",
        ),
        (
            {"round_seconds": [0.1] * 8},
            "round_seconds: expected one number, or 9 numbers for drafts of 0 to 8 tokens, got 8",
        ),
        ({"round_seconds": [0.1, 0.0]}, "round_seconds[1]: expected a number > 0, got 0.0"),
        (
            {"round_seconds": [1e-3] * 8 + [2e3]},
            (
                "round_seconds: expected the largest value to be at most 1,000,000 times the"
                " smallest, got 2000 and 0.001"
            ),
        ),
    ],
)
def test_what_is_no_problem(change: dict[str, Any], said: str) -> None:
    """Tests that a message names the field, what was expected and what came."""
    data = generate("draft-stopping/paper-2").to_dict() | change
    with pytest.raises(InvalidInput) as refusal:
        DraftStoppingProblem.from_dict(data)
    assert str(refusal.value) == said


def test_rounds_by_length() -> None:
    """Tests that a list of one number is that number, and that the measured cost of a draft decides
    against it.
    """
    problem: Any = generate("draft-stopping/paper-2", max_draft=4)
    best, same, none = (
        solve(dataclasses.replace(problem, round_seconds=seconds))
        for seconds in (0.15, 5 * [0.15], [0.03] + 4 * [0.15])
    )
    assert same.objective == pytest.approx(best.objective, rel=1e-12)
    assert none.objective == pytest.approx(1 / 0.03)
    assert isinstance(best.plan, DraftStoppingPlan) and isinstance(none.plan, DraftStoppingPlan)
    assert best.plan.start == 0 and none.plan.start == STOP


@settings(max_examples=5)
@given(seed=st.integers(0, 1000))
def test_simulation_agrees_with_the_judge(seed: int) -> None:
    """Tests that rounds drawn at random yield what the judge says, within five standard errors."""
    problem: Any = generate("draft-stopping/random", bins=3, max_draft=5, seed=seed)
    played = simulate(problem, solve(problem), seed=seed, replications=20_000)
    assert played.model is not None
    assert abs(played.mean - played.model) <= 5.0 * played.standard_error + 1e-12
