"""Fair goodput from the command line: generate, solve, evaluate, schema, summaries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specopt.commands.cli import run


@pytest.mark.parametrize("family", ["paper-5", "per-second"])
def test_from_family_to_verdict(
    family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a problem is made, solved, saved and judged, with a readable summary of rates and
    schedule.
    """
    problem, result = str(tmp_path / "problem.json"), str(tmp_path / "result.json")
    assert run(["generate", f"fair-goodput/{family}", "--param", "rates=wide", "-o", problem]) == 0
    assert run(["solve", problem, "-o", result]) == 0
    out = capsys.readouterr().out
    assert "optimal" in out
    assert "tokens per " + ("second" if family == "per-second" else "round") in out
    assert "mean drafts" in out and "schedule" in out
    assert run(["evaluate", problem, result, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["feasible"] and report["matches"] and report["violations"] == []


def test_a_wrong_plan_is_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that evaluate names what a plan gets wrong, and exits with 1."""
    problem, result = tmp_path / "problem.json", tmp_path / "result.json"
    assert run(["generate", "fair-goodput/paper-5", "-o", str(problem)]) == 0
    assert run(["solve", str(problem), "-o", str(result)]) == 0
    data = json.loads(result.read_text())
    data["plan"]["schedule"][0]["draft_tokens"][0] += 1
    result.write_text(json.dumps(data))
    capsys.readouterr()
    assert run(["evaluate", str(problem), str(result)]) == 1
    assert "violates" in capsys.readouterr().out


def test_infeasible_least_rates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that minimum rates set on the command line are refused with the clients' names, exit
    1.
    """
    problem = str(tmp_path / "problem.json")
    command = [
        "generate",
        "fair-goodput/paper-5",
        "--param",
        "clients=4",
        "--set",
        "min_goodput=[2,2,9,2]",
    ]
    assert run([*command, "-o", problem]) == 0
    assert run(["solve", problem]) == 1
    assert "client 2 needs 9 tokens per round" in capsys.readouterr().out


def test_schema_and_methods(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the schema has every field, and that every method is listed."""
    assert run(["schema", "fair-goodput"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert {"acceptance_rates", "min_goodput", "per", "verify_seconds_per_token"} <= set(
        schema["properties"]
    )
    assert run(["methods", "fair-goodput", "--json"]) == 0
    names = {entry["name"] for entry in json.loads(capsys.readouterr().out)}
    assert {
        "dual",
        "convex",
        "enumeration",
        "column-generation",
        "threshold-greedy",
        "random",
    } <= names
