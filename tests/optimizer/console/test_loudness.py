"""What is said on stderr: more with -v, nothing but failures with -q; defaults from the
environment; the log.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from specopt import generate, save, solve
from specopt.commands.cli import run


@pytest.fixture
def problem(tmp_path: Path) -> str:
    """The file of a small problem."""
    save(generate("draft-allocation/paper-5"), tmp_path / "p.json")
    return str(tmp_path / "p.json")


def test_the_log_tells_what_is_solved(caplog: pytest.LogCaptureFixture) -> None:
    """Tests that the logger of the package has records of method, outcome and counters, and that
    they name the kind.
    """
    with caplog.at_level(logging.DEBUG, logger="specopt"):
        result = solve(generate("draft-allocation/paper-5"), "greedy")
    infos = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert infos[0].startswith("draft-allocation by greedy: time limit None s, gap 0, seed 0")
    assert infos[1].startswith(
        f"draft-allocation by greedy: {result.status} (converged), objective {result.objective}"
    )
    assert any(record.levelno == logging.DEBUG for record in caplog.records)


def test_loudness(problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that -v shows the log, -q silences notes but no failure, that one run leaves the next
    alone, not both.
    """
    command = ["solve", problem, "--method", "greedy", "-o", str(tmp_path / "r.json")]
    assert run(["-v", *command]) == 0
    assert "info: draft-allocation by greedy: " in capsys.readouterr().err
    assert run(command) == 0
    said = capsys.readouterr().err
    assert "info:" not in said and "written to" in said
    assert run(["-q", *command]) == 0
    assert capsys.readouterr().err == ""
    assert run(["-q", "solve", str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err
    assert run(["-q", "-v", *command]) == 2
    assert run(command) == 0


def test_defaults_from_the_environment(
    problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that the environment sets the time limit unless an option does, and that its numbers
    are checked.
    """
    command = ["-vv", "solve", problem, "--method", "greedy", "--json"]
    monkeypatch.setenv("SPECOPT_TIME_LIMIT", "7.5")
    monkeypatch.setenv("SPECOPT_GAP", "0.25")
    assert run(command) == 0
    said = capsys.readouterr()
    assert (
        "time limit 7.5 s, gap 0.25" in said.err
        and json.loads(said.out)["kind"] == "draft-allocation"
    )
    assert run([*command, "--time-limit", "9"]) == 0
    assert "time limit 9.0 s" in capsys.readouterr().err
    monkeypatch.setenv("SPECOPT_TIME_LIMIT", "soon")
    assert run(command) == 2
    assert "SPECOPT_TIME_LIMIT" in capsys.readouterr().err
