"""The command line on draft control: generate, solve, evaluate, schema, methods."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specopt.commands.cli import run


@pytest.mark.parametrize("family", ["paper-3", "random", "alternating"])
def test_generate_solve_evaluate(
    family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a generated problem is solved, proven and judged, and that the policy is shown
    state by state.
    """
    problem, result = str(tmp_path / "problem.json"), str(tmp_path / "result.json")
    assert (
        run(["generate", f"draft-control/{family}", "--param", "min_draft=0", "-o", problem]) == 0
    )
    assert run(["solve", problem, "-o", result]) == 0
    shown = capsys.readouterr().out
    for text in (
        "draft-control by auto (policy-iteration): optimal",
        "tokens per second",
        "draft length",
        "resolution",
    ):
        assert text in shown
    assert run(["evaluate", problem, result]) == 0
    assert "feasible" in capsys.readouterr().out


def test_the_policy_is_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a state without drafts shows no resolution, and that long policies are cut."""
    problem = str(tmp_path / "problem.json")
    assert (
        run(["generate", "draft-control/alternating", "--param", "min_draft=0", "-o", problem]) == 0
    )
    assert run(["solve", problem]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[-2:]] == [
        ["0", "50.00%", "5e+04", "0"],
        ["1", "50.00%", "1e+07", "0.9", "28", "100"],
    ]
    assert run(["generate", "draft-control/random", "--param", "states=45", "-o", problem]) == 0
    assert run(["solve", problem]) == 0
    assert "... and 5 more states" in capsys.readouterr().out


def test_violated_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that too long drafts, an unknown resolution and a state too few are exit 1 with the
    reason.
    """
    problem, result = tmp_path / "problem.json", tmp_path / "result.json"
    assert run(["generate", "draft-control/alternating", "-o", str(problem)]) == 0
    head = {"format": "specopt/1", "kind": "draft-control"}
    for length, resolution, states, text in (
        (99, 100, 2, "policy[0].draft_length: expected 1 to 32, got 99"),
        (3, 7, 2, "policy[0].resolution: expected one of 100, got 7"),
        (3, 100, 1, "policy: expected 2 entries, one for each of the states, got 1"),
    ):
        policy = [{"draft_length": length, "resolution": resolution}] * states
        result.write_text(json.dumps({**head, "plan": {"policy": policy}}))
        assert run(["evaluate", str(problem), str(result)]) == 1
        assert text in capsys.readouterr().out


def test_bad_files_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a chain of two recurrent classes is exit 2 with one line that names them."""
    problem = tmp_path / "problem.json"
    assert run(["generate", "draft-control/alternating", "-o", str(problem)]) == 0
    problem.write_text(
        json.dumps(json.loads(problem.read_text()) | {"transition": [[1, 0], [0, 1]]})
    )
    capsys.readouterr()
    assert run(["solve", str(problem)]) == 2
    shown = capsys.readouterr().err.strip()
    assert "transition: expected exactly one recurrent class, got 2: states [0] and [1]" in shown
    assert "\n" not in shown


def test_schema_and_methods(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the schema prints, and that every method says where it comes from."""
    assert run(["schema", "draft-control"]) == 0
    assert (
        json.loads(capsys.readouterr().out)["properties"]["transition"]["items"]["type"] == "array"
    )
    assert run(["methods", "draft-control"]) == 0
    shown = capsys.readouterr().out
    for name in ("policy-iteration", "linear-program", "brute-force", "myopic"):
        assert name in shown
