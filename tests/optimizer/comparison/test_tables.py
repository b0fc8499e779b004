"""Tables of merged folders, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.command_line import CommandLine
from helpers.records import kept, record

from specopt import InvalidInput
from specopt.comparison.store import merged

DRAFTS: dict[str, Any] = {
    "kind": "draft-allocation",
    "bound": 200.0,
    "sources": {"version": "specopt 0.1.0"},
}


def test_folders_are_merged(cli: CommandLine, tmp_path: Path) -> None:
    """Tests that the newest record of a cell counts, in whatever order folders are given."""
    kept(
        tmp_path / "1",
        record("greedy", "a/1", 50.0, **DRAFTS),
        record("water_level", "a/1", 200.0, **DRAFTS),
    )
    kept(tmp_path / "2", record("greedy", "a/1", 150.0, started="2026-02-01", **DRAFTS))
    for folders in ("1 2", "2 1"):
        shown = cli(f"compare --table {folders}").out
        assert shown.startswith("## draft-allocation: 1 instances\n\n| method | common |")
        assert "| greedy | 1 | 0 | 0 | 33.3 | 33.3 | 1 | 1 | 0 | 0 | 0 | 0 | 0 |" in shown
        assert "| water\\_level | 1 | 100 | 100 | 0 | 0 | 1 | 1 | 0 | 0 | 0 | 100 | 100 |" in shown
    cli("compare --table 2 1 -o table.md")
    assert Path("table.md").read_text() == shown


def test_what_cannot_be_merged_is_named(tmp_path: Path) -> None:
    """Tests that a folder without results, and a name that two distributions share, are refused."""
    with pytest.raises(
        InvalidInput, match="expected a folder with comparison results, but found no results"
    ):
        merged([tmp_path])
    mine = {"version": "mine 1.0", "method": "def"}
    kept(
        tmp_path,
        record("greedy", "a/1", 50.0, **DRAFTS),
        record("greedy", "b", 60.0, **(DRAFTS | {"sources": mine})),
    )
    with pytest.raises(
        InvalidInput, match="methods of 'specopt' and 'mine' have the same name 'greedy'"
    ):
        merged([tmp_path])
