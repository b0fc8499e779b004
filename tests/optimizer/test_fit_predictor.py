"""`specopt fit-predictor`: what it writes and shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.draft_logs import draft_log, write

from specopt.commands.cli import run

OPTIONS = ("--draft-seconds", "0.02", "--round-seconds", "0.15")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the command writes a problem that can be solved, and that a score without signal
    wins nothing.
    """
    log = write(draft_log(600, window=5, signal=0.0, seed=5), tmp_path / "log.csv")
    problem = tmp_path / "problem.json"
    assert run(["fit-predictor", str(log), *OPTIONS, "--json", "-o", str(problem)]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert captured.err.endswith(f"written to {problem}\n")
    rules = {one["method"]: one for one in found["rules"]}
    assert rules["belief"]["gain_interval"][0] <= 0.0
    assert rules["fixed-window"]["gain"] == 0.0
    assert set(found["coefficients"]) == {
        "intercept",
        "confidence",
        "entropy",
        "margin",
        "deviation",
    }
    assert run(["solve", str(problem)]) == 0
    assert run(["fit-predictor", str(log), *OPTIONS]) == 0
    out = capsys.readouterr().out
    assert "first-rejection" in out and "faster than the best fixed window" not in out
