"""All policies, against the oracle's."""

from __future__ import annotations

import pytest

from specopt import DraftControlProblem, Unsupported, generate, solve


def test_too_many_policies() -> None:
    """Tests that more policies than memory holds are refused, and that those of transient states do
    not count.
    """
    problem = generate("draft-control/alternating", max_draft=1001)
    with pytest.raises(Unsupported, match="has more than 1,000,000 policies"):
        solve(problem, "brute-force")
    inside = DraftControlProblem.from_dict(
        problem.to_dict() | {"transition": [[0.5, 0.5], [0.0, 1.0]]}
    )
    assert solve(inside, "brute-force").stats["policies"] == 1001
