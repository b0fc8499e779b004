"""The command line on verification batching: generate, solve, evaluate, schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specopt.commands.cli import run


@pytest.mark.parametrize("family", ["warm", "mixed", "tight", "memory-bound"])
def test_generate_solve_evaluate(
    family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a generated problem is solved, proven and judged."""
    problem, result = str(tmp_path / "problem.json"), str(tmp_path / "result.json")
    arguments = ["--param", "requests=12", "--seed", "1", "-o", problem]
    assert run(["generate", f"verification-batch/{family}", *arguments]) == 0
    assert run(["solve", problem, "-o", result]) == 0
    shown = capsys.readouterr().out
    for text in (
        "verification-batch by auto (threshold): optimal",
        "warm tokens",
        "expected tokens of the batch",
        "batch",
    ):
        assert text in shown
    assert run(["evaluate", problem, result]) == 0
    assert "feasible" in capsys.readouterr().out


def test_violated_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a batch that ends too late is exit 1 with the reason."""
    problem, result = tmp_path / "problem.json", tmp_path / "result.json"
    assert (
        run(["generate", "verification-batch/tight", "--param", "requests=30", "-o", str(problem)])
        == 0
    )
    head = {"format": "specopt/1", "kind": "verification-batch"}
    result.write_text(json.dumps({**head, "plan": {"batch": list(range(30))}}))
    assert run(["evaluate", str(problem), str(result)]) == 1
    assert "is due in" in capsys.readouterr().out


def test_schema(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the schema prints, its columns without a least length."""
    assert run(["schema", "verification-batch"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert "minItems" not in schema["properties"]["expected_tokens"]
