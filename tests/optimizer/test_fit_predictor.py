"""`specopt fit-predictor`: what it writes and shows."""

from __future__ import annotations

from pathlib import Path

from helpers.command_line import CommandLine
from helpers.draft_logs import draft_log, write


def test_command(cli: CommandLine) -> None:
    """Tests that the command writes a problem that can be solved, and that a score without signal
    wins nothing.
    """
    write(draft_log(600, window=5, signal=0.0, seed=5), Path("log.csv"))
    line = "fit-predictor log.csv --draft-seconds 0.02 --round-seconds 0.15"
    printed = cli(f"{line} --json -o problem.json")
    assert printed.err.endswith("written to problem.json\n")
    rules = {one["method"]: one for one in printed.json["rules"]}
    assert rules["belief"]["gain_interval"][0] <= 0.0
    assert rules["fixed-window"]["gain"] == 0.0
    names = {"intercept", "confidence", "entropy", "margin", "deviation"}
    assert set(printed.json["coefficients"]) == names
    cli("solve problem.json")
    shown = cli(line).out
    assert "first-rejection" in shown and "faster than the best fixed window" not in shown
