"""The command line on draft allocation: generate, solve, evaluate, schema, methods."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specopt.commands.cli import run


def test_generate_solve_evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a generated problem is solved and judged, and that the summary shows plan, terms
    and bound.
    """
    problem, result = str(tmp_path / "problem.json"), str(tmp_path / "result.json")
    assert (
        run(
            [
                "generate",
                "draft-allocation/paper-5",
                "--set",
                "max_draft_tokens=[1,1,2,2,3,3,4,4]",
                "-o",
                problem,
            ]
        )
        == 0
    )
    assert run(["solve", problem, "-o", result]) == 0
    shown = capsys.readouterr().out
    for text in (
        "draft-allocation by auto (water-level): optimal (converged)",
        "weighted tokens per round",
        "own tokens",
        "accepted draft tokens",
        "every plan has at most this",
        "draft tokens    1 1 2 2 3 3 4 4",
    ):
        assert text in shown
    assert run(["evaluate", problem, result]) == 0
    assert "feasible" in capsys.readouterr().out


def test_violated_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a plan over the budget is exit 1 with the reason, and one for other clients has no
    objective.
    """
    problem, result = tmp_path / "problem.json", tmp_path / "result.json"
    assert (
        run(["generate", "draft-allocation/uniform", "--param", "clients=2", "-o", str(problem)])
        == 0
    )
    head = {"format": "specopt/1", "kind": "draft-allocation"}
    result.write_text(json.dumps({**head, "plan": {"draft_tokens": [20, 1]}}))
    assert run(["evaluate", str(problem), str(result)]) == 1
    assert "draft_tokens: sum to 21, the budget is 20" in capsys.readouterr().out
    result.write_text(json.dumps({**head, "plan": {"draft_tokens": [1, 2.0]}}))
    assert run(["evaluate", str(problem), str(result)]) == 2
    assert "plan.draft_tokens[1]: expected int, got 2.0" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["greedy", "milp", "brute-force"])
def test_methods_as_json(method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that every method gives a result file on stdout."""
    problem = str(tmp_path / "problem.json")
    arguments = ["--param", "clients=3", "--param", "budget=6"]
    assert run(["generate", "draft-allocation/uniform", *arguments, "-o", problem]) == 0
    assert run(["solve", problem, "--method", method, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "optimal"
    assert sum(found["plan"]["draft_tokens"]) == 6


def test_schema_and_methods(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the schema prints, and that size limits are in the method's own count."""
    assert run(["schema", "draft-allocation"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "draft-allocation"
    assert run(["methods", "draft-allocation"]) == 0
    shown = capsys.readouterr().out
    assert "at most 200,000 allocations" in shown
    assert "output lengths" not in shown


def test_other_commands_refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a command that does not know the kind says so."""
    problem, result = str(tmp_path / "problem.json"), str(tmp_path / "result.json")
    assert run(["generate", "draft-allocation/uniform", "-o", problem]) == 0
    assert run(["solve", problem, "-o", result]) == 0
    capsys.readouterr()
    assert run(["simulate", problem, result]) == 2
    assert "draft-allocation" in capsys.readouterr().err
