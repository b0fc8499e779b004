"""Comparisons without processes, for tests of everything else."""

from __future__ import annotations

from typing import Any

import pytest

from specopt.comparison import processes, worker
from specopt.comparison.cell import Cell, Record


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Solve the cells of comparisons in this process; the labels of those that were solved."""
    solved: list[str] = []

    def run_cell(cell: Cell, *_: Any) -> Record:
        solved.append(cell.label)
        return Record.of(cell, **{"status": "failed", "host": "here", **worker.answer((cell, []))})

    monkeypatch.setattr(processes, "run_cell", run_cell)
    return solved
