"""The best action for all states against its definition in rational arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from oracles import draft_control as naive

from specopt import DraftControlPlan, DraftControlProblem, generate, solve
from specopt.testing.strategies.draft_control import problems as draft_controls


@settings(max_examples=40)
@given(draft_controls(longest=4))
def test_best_static_is_the_best_of_one_action(problem: DraftControlProblem) -> None:
    """Tests that one action is taken everywhere, and that none does better everywhere."""
    result = solve(problem, "best-static")
    assert isinstance(result.plan, DraftControlPlan)
    assert len({(choice.draft_length, choice.resolution) for choice in result.plan.policy}) == 1
    assert result.objective == pytest.approx(float(naive.best_static(problem.to_dict())), rel=1e-12)


def test_adapting_pays_most_where_the_link_is_slow() -> None:
    """Tests that the optimal policy of both regimes of paper 3 beats myopic and static ones, static by more."""
    for regime in ("low", "high"):
        problem = generate("draft-control/paper-3", regime=regime)
        best, myopic, static = (solve(problem, m).objective for m in ("policy-iteration", "myopic", "best-static"))
        assert best is not None and myopic is not None and static is not None
        assert best > 1.01 * myopic > 1.1 * static
