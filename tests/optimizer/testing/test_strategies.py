"""Random problems and plans of every kind, for specopt's own tests and for others'."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from specopt import InvalidInput, Problem
from specopt.kinds import KINDS
from specopt.testing import strategies


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_plans_are_feasible_and_differ(kind: str) -> None:
    """Tests that every kind has problems, and for most of them several plans, all of which the
    judge accepts.
    """
    worth: dict[str, set[float]] = {}

    @settings(
        max_examples=50, derandomize=True, suppress_health_check=list(HealthCheck)
    )  # shares are of a fixed sample
    @given(strategies.problems(kind), st.data())
    def draw(problem: Problem, data: st.DataObject) -> None:
        for _ in range(3):
            plan = data.draw(strategies.plans(problem))
            assert problem.violations(plan) == []
            worth.setdefault(problem.sha256, set()).add(problem.evaluate(plan).objective)

    draw()
    assert sum(len(values) > 1 for values in worth.values()) > len(worth) / 4


def test_examples_shrink() -> None:
    """Tests that a batch of two with a request that does not fit shrinks to plain numbers, whatever
    the time is.
    """
    early = find(
        strategies.problems("verification-batch"),
        lambda problem: problem.to_dict()["now_seconds"] < 0.0,
    )
    assert early.to_dict()["expected_tokens"] == []
    problem = find(strategies.problems("verification-batch"), lambda problem: problem.requests >= 2)
    data = problem.to_dict()
    assert data["expected_tokens"] == [0.0, 0.0]
    assert data["memory_bytes"] == 0.0


def test_an_unknown_kind_is_named() -> None:
    """Tests that a kind that is none is refused with those that are."""
    with pytest.raises(
        InvalidInput, match=r"kind: expected one of serving-latency, .*, got 'verification'"
    ):
        strategies.problems("verification")
