"""The command `sensitivity`."""

from __future__ import annotations

import pytest
from helpers.command_line import CommandLine

import specopt


@pytest.fixture(autouse=True)
def problem(cli: CommandLine) -> None:
    """A problem of four tasks."""
    made = specopt.generate("serving-latency/paper-1", tasks=4, max_output=50, seed=3)
    specopt.save(made, "problem.json")


def test_sensitivity_prints_a_table(cli: CommandLine) -> None:
    """Tests that every resource has its line, and the method and the way are named."""
    shown = cli("sensitivity problem.json").out
    for word in (
        "solved again by auto",
        "+1 MHz bandwidth",
        "+1 GB draft memory",
        "+0.01 acceptance rate",
        "+1 maximum speculation length",
        "draft passes 1 % faster",
        "verify passes 1 % faster",
        "proven",
        "finite differences",
    ):
        assert word in shown


def test_sensitivity_json(cli: CommandLine) -> None:
    """Tests that --json prints one entry per resource, and that method, options, limit and seed are
    taken.
    """
    data = cli("sensitivity problem.json --json").json
    assert data["status"] == "optimal"
    assert len(data["changes"]) == 6
    assert all(
        entry["proven"] and entry["bounds"] == [entry["change"]] * 2 for entry in data["changes"]
    )
    line = "sensitivity problem.json --method static-batching --option size=2 --time-limit 30"
    data = cli(f"{line} --seed 1 --json").json
    assert (data["method"], data["options"]) == ("static-batching", {"size": 2})
    assert not any(entry["proven"] for entry in data["changes"])
    assert "at least" in cli(f"{line} --seed 1").out


def test_sensitivity_without_a_plan(cli: CommandLine) -> None:
    """Tests that an infeasible problem exits with 1 and says why."""
    cli(
        "generate serving-latency/paper-1 --param tasks=3 --param max_output=50 --seed 3"
        " --set draft_memory_bytes=1.5e9 -o hard.json"
    )
    shown = cli("sensitivity hard.json", 1).out
    assert "draft-model memory" in shown
    assert "a plan exists only with +1 GB draft memory" in shown


def test_sensitivity_refuses(cli: CommandLine) -> None:
    """Tests that bad usage exits with 2 and one message."""
    cli("solve problem.json -o result.json")
    cli.refuses("sensitivity", "FILE")
    cli.refuses("sensitivity result.json", "expected a problem, got a result")
    cli.refuses("sensitivity problem.json --method magic", "magic")
    cli.refuses("sensitivity problem.json --time-limit -1", "time_limit", "-1")


def test_sensitivity_interrupted(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that after Ctrl-C what was found is printed, and the exit code is 130."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "specopt.solvers.serving_latency.algorithm_1.algorithm_1_batches", interrupt
    )
    shown = cli("sensitivity problem.json --method algorithm-1", 130).out
    assert "solved again by algorithm-1" in shown
