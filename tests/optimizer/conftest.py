"""The command line, for tests of everything that it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.command_line import CommandLine


@pytest.fixture
def cli(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> CommandLine:
    """Commands in this process, with `tmp_path` as their working folder."""
    monkeypatch.chdir(tmp_path)
    return CommandLine(capfd)
