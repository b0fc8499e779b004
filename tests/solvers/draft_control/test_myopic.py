"""Eq. 13 against its definition in rational arithmetic."""

from __future__ import annotations

import pytest
from helpers.untyped import solve
from hypothesis import given, settings
from oracles import draft_control as naive

from specopt import DraftControlProblem
from specopt.kinds.draft_control.strategies import problems as draft_controls


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
