"""All policies, against the oracle's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from oracles import draft_control as naive

from specopt import DraftControlProblem, Status, Unsupported, generate, solve
from specopt.testing.strategies.draft_control import problems as draft_controls


@settings(max_examples=40)
@given(draft_controls())
def test_brute_force_finds_the_optimum(problem: DraftControlProblem) -> None:
    """Tests that the enumeration of all policies finds the oracle's optimum, beside transient states too."""
    result = solve(problem, "brute-force")
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(float(naive.optimum(problem.to_dict())), rel=1e-12)


def test_too_many_policies() -> None:
    """Tests that more policies than memory holds are refused, and that those of transient states do not count."""
    problem = generate("draft-control/alternating", max_draft=1001)
    with pytest.raises(Unsupported, match="has more than 1,000,000 policies"):
        solve(problem, "brute-force")
    inside = DraftControlProblem.from_dict(problem.to_dict() | {"transition": [[0.5, 0.5], [0.0, 1.0]]})
    assert solve(inside, "brute-force").stats["policies"] == 1001
