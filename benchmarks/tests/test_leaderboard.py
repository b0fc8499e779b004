"""The leaderboard of the pages: families on which all methods are alike, and where the numbers come
from.
"""

from __future__ import annotations

from typing import Any

import leaderboard  # type: ignore[import-not-found]  # benchmarks are no package
from helpers.records import record

from specopt.comparison.table import Comparison

FIELDS: dict[str, Any] = {
    "kind": "draft-allocation",
    "bound": 200.0,
    "seed": 3,
    "host": "fast | _one_",
    "sources": {"version": "specopt 0.1.0", "method": "abc"},
}


def test_families_on_which_all_methods_are_alike_are_one_row() -> None:
    """Tests that such families leave the averages of the methods, that a family which tells one
    apart stays.

    The page says where its numbers come from.
    """
    methods = ("greedy", "water-level")
    different = [
        record("greedy", "a/1", 50.0, **FIELDS),
        record("water-level", "a/1", 200.0, **FIELDS),
    ]
    alike = [record(name, f"{family}/1", 7.0, **FIELDS) for family in "bc" for name in methods]
    alone = [record(name, "d/1", 7.0, **(FIELDS | {"kind": "placement"})) for name in methods]
    board = leaderboard.leaderboard(Comparison([*different, *alike, *alone], known={}))
    assert "## draft-allocation: 3 instances\n\n| method |" in board
    assert "| greedy | 1 | 0 | 0 | 300 | 300 | 1 | 1 | 0 | 0 | 0 | 0 | 0 |" in board
    assert "| all 2 methods alike: b, c | 2 | 100 | 0 |" in board
    assert (
        "## placement: 1 instances\n\n| method |" in board
        and "| all 2 methods alike: d | 1 | 100 |" in board
    )
    for origin in (
        "- Machine: fast \\| \\_one\\_",
        "- Seed: 3",
        "- draft-allocation greedy: method abc, version specopt 0.1.0",
    ):
        assert f"{origin}\n" in board
