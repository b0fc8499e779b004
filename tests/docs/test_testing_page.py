"""The page on testing solvers: its examples print what it shows."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that every example of the page gives what it shows, and saves the problem of the
    failure.
    """
    monkeypatch.chdir(tmp_path)
    assert doctest.testfile(str(DOCS / "testing.md"), module_relative=False).failed == 0
    assert len(list(tmp_path.glob("verification-batch-*.json"))) == 1
