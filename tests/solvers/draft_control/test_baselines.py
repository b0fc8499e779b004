"""The baselines of draft control against their definitions in rational arithmetic."""

from __future__ import annotations

import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings
from oracles import draft_control as naive

from specopt import DraftControlProblem, Unsupported
from specopt.kinds.draft_control.strategies import problems as draft_controls


@settings(max_examples=40)
@given(draft_controls(longest=4))
def test_best_static_is_the_best_of_one_action(problem: DraftControlProblem) -> None:
    """Tests that one action is taken everywhere, and that none does better everywhere."""
    result = solve(problem, "best-static")
    assert len({(choice.draft_length, choice.resolution) for choice in result.plan.policy}) == 1
    assert result.objective == pytest.approx(float(naive.best_static(problem.to_dict())), rel=1e-12)


def test_adapting_pays_most_where_the_link_is_slow() -> None:
    """Tests that the optimal policy of both regimes of paper 3 beats myopic and static ones, static
    by more.
    """
    for regime in ("low", "high"):
        problem = generate("draft-control/paper-3", regime=regime)
        best, myopic, static = (
            solve(problem, m).objective for m in ("policy-iteration", "myopic", "best-static")
        )
        assert best > 1.01 * myopic > 1.1 * static


def test_no_drafts_is_the_rival_to_beat() -> None:
    """Tests that with the seconds by length not drafting can win, and that it is refused where
    drafts are a must.
    """
    data = generate("draft-control/alternating").to_dict()
    states = [state | {"acceptance_rates": [0.5]} for state in data["states"]]
    measured = {
        "states": states,
        "draft_lengths": [0, 8],
        "verify_seconds": [0.05, 0.085, *([0.099] * 7)],
    }
    problem = DraftControlProblem.from_dict(data | measured)
    none = solve(problem, "no-drafts")
    assert none.objective == pytest.approx(20.0)
    assert solve(problem).objective == none.objective and none.gap == 0.0
    one = solve(DraftControlProblem.from_dict(data | measured | {"verify_seconds": 0.099}))
    assert one.plan.policy[1].draft_length == 5
    with pytest.raises(
        Unsupported, match="it has drafts from 1 on, but the method accepts drafts of 0 tokens"
    ):
        solve(DraftControlProblem.from_dict(data), "no-drafts")


@settings(max_examples=40)
@given(draft_controls(longest=6))
def test_myopic_maximises_each_iteration(problem: DraftControlProblem) -> None:
    """Tests that every state takes an action of the most tokens per second of its own (Eq. 13)."""
    result = solve(problem, "myopic")
    data = problem.to_dict()
    for state, choice in enumerate(result.plan.policy):
        action = (choice.draft_length, choice.resolution)
        ratio = naive.tokens(data, state, action) / naive.seconds(data, state, action)
        assert float(ratio) == pytest.approx(float(naive.largest_ratio(data, state)), rel=1e-12)
