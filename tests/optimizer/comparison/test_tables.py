"""Tables of merged folders, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.records import record

from specopt import InvalidInput
from specopt.commands.cli import run
from specopt.comparison.cell import Record
from specopt.comparison.store import Store, merged

DRAFTS: dict[str, Any] = {
    "kind": "draft-allocation",
    "bound": 200.0,
    "sources": {"version": "specopt 0.1.0"},
}


def kept(folder: Path, *records: Record) -> Path:
    """Write records to a folder."""
    store = Store(folder)
    for one in records:
        store.append(one)
    store.close()
    return folder


def test_folders_are_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the newest record of a cell counts, in whatever order folders are given."""
    first = kept(
        tmp_path / "1",
        record("greedy", "a/1", 50.0, **DRAFTS),
        record("water_level", "a/1", 200.0, **DRAFTS),
    )
    second = kept(tmp_path / "2", record("greedy", "a/1", 150.0, started="2026-02-01", **DRAFTS))
    for folders in ((first, second), (second, first)):
        assert run(["compare", "--table", *map(str, folders)]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("## draft-allocation: 1 instances\n\n| method | common |")
        assert "| greedy | 1 | 0 | 0 | 33.3 | 33.3 | 1 | 1 | 0 | 0 | 0 | 0 | 0 |" in shown
        assert "| water\\_level | 1 | 100 | 100 | 0 | 0 | 1 | 1 | 0 | 0 | 0 | 100 | 100 |" in shown
    target = tmp_path / "table.md"
    assert run(["compare", "--table", str(second), str(first), "-o", str(target)]) == 0
    assert target.read_text() == shown


def test_what_cannot_be_merged_is_named(tmp_path: Path) -> None:
    """Tests that a folder without results, and a name that two distributions share, are refused."""
    with pytest.raises(
        InvalidInput, match="expected a folder with results of a comparison, got none"
    ):
        merged([tmp_path])
    mine = {"version": "mine 1.0", "method": "def"}
    folder = kept(
        tmp_path / "1",
        record("greedy", "a/1", 50.0, **DRAFTS),
        record("greedy", "b", 60.0, **(DRAFTS | {"sources": mine})),
    )
    with pytest.raises(
        InvalidInput, match="methods of 'specopt' and 'mine' share the name 'greedy'"
    ):
        merged([folder])
