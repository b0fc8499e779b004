"""What is said on stderr: more with -v, nothing but failures with -q; defaults from the
environment.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.command_line import CommandLine

from specopt import generate, save

SOLVE = "solve problem.json --method greedy"


@pytest.fixture(autouse=True)
def problem(tmp_path: Path) -> None:
    """The file of a small problem."""
    save(generate("draft-allocation/paper-5"), tmp_path / "problem.json")


def test_loudness(cli: CommandLine) -> None:
    """Tests that -v shows the log, -q silences notes but no failure, that one run leaves the next
    alone, not both.
    """
    line = f"{SOLVE} -o result.json"
    assert "info: draft-allocation by greedy: " in cli(f"-v {line}").err
    said = cli(line).err
    assert "info:" not in said and "written to" in said
    assert cli(f"-q {line}").err == ""
    assert "none.json" in cli("-q solve none.json", 2).err
    cli(f"-q -v {line}", 2)
    cli(line)


def test_defaults_from_the_environment(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the environment sets the time limit unless an option does, and that its numbers
    are checked.
    """
    line = f"-vv {SOLVE} --json"
    monkeypatch.setenv("SPECOPT_TIME_LIMIT", "7.5")
    monkeypatch.setenv("SPECOPT_GAP", "0.25")
    printed = cli(line)
    assert "time limit 7.5 s, gap 0.25" in printed.err
    assert printed.json["kind"] == "draft-allocation"
    assert "time limit 9.0 s" in cli(f"{line} --time-limit 9").err
    monkeypatch.setenv("SPECOPT_TIME_LIMIT", "soon")
    cli.refuses(line, "SPECOPT_TIME_LIMIT")
