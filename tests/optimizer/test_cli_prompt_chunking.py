"""The command line on prompt chunking: generate, solve, evaluate, schema, methods."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specopt.commands.cli import run


def test_generate_solve_evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a generated problem is solved and judged, and that the summary shows each chunk on
    its way.
    """
    problem, result = str(tmp_path / "problem.json"), str(tmp_path / "result.json")
    assert (
        run(["generate", "prompt-chunking/paper-4", "--param", "prompt_tokens=351", "-o", problem])
        == 0
    )
    assert run(["solve", problem, "-o", result]) == 0
    shown = capsys.readouterr().out
    for text in (
        "prompt-chunking by auto (",
        "seconds to the first token",
        "upload",
        "6 of 351 tokens",
        "uuuuuu",
    ):
        assert text in shown
    assert run(["evaluate", problem, result]) == 0
    assert "feasible" in capsys.readouterr().out
    written = json.loads(Path(result).read_text())
    assert sum(written["plan"]["chunks"]) == 351
    assert sum(written["terms"].values()) == pytest.approx(written["objective"])


def test_long_plans_are_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a plan of many chunks prints its first ones and says how many more there are."""
    problem = str(tmp_path / "problem.json")
    assert run(["generate", "prompt-chunking/paper-4", "-o", problem]) == 0
    assert run(["solve", problem, "--method", "fixed", "--option", "chunk_tokens=10"]) == 0
    assert "... and 50 more chunks" in capsys.readouterr().out


def test_free_resources_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a prompt that takes no time at all prints, too."""
    problem = str(tmp_path / "problem.json")
    free = ["--set", "bytes_per_token=0", "--set", "message_overhead_seconds=0"]
    delay = ["--set", 'cloud_delay={"tokens": [0, 1], "seconds": [0, 0]}']
    assert run(["generate", "prompt-chunking/paper-4", *free, *delay, "-o", problem]) == 0
    assert run(["solve", problem]) == 0
    assert "optimal" in capsys.readouterr().out


def test_violated_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that plans beyond the cap, off the grid or of another prompt are exit 1, and no
    integers exit 2.
    """
    problem, result = tmp_path / "problem.json", tmp_path / "result.json"
    family = ["generate", "prompt-chunking/paper-4", "--param", "prompt_tokens=20"]
    assert (
        run([*family, "--set", "max_chunks=2", "--set", "grid_tokens=4", "-o", str(problem)]) == 0
    )
    head = {"format": "specopt/1", "kind": "prompt-chunking"}
    for chunks, code, text in (
        ([8, 8, 4], 1, "chunks: expected at most 2 entries, got 3"),
        ([10, 10], 1, "chunks[0]: expected a multiple of 4 tokens, got 10"),
        ([8, 8], 1, "chunks: sum to 16, the prompt has 20 tokens"),
        ([8, 12.0], 2, "plan.chunks[1]: expected int, got 12.0"),
        ([20, 0], 2, "plan.chunks[1]"),
    ):
        result.write_text(json.dumps({**head, "plan": {"chunks": chunks}}))
        assert run(["evaluate", str(problem), str(result)]) == code
        shown = capsys.readouterr()
        assert text in shown.out + shown.err


@pytest.mark.parametrize(
    "method", ["exact", "equation-3", "best-equal", "geometric", "whole", "brute-force"]
)
def test_methods_as_json(method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that every method gives a result file with a bound on stdout."""
    problem = str(tmp_path / "problem.json")
    assert (
        run(["generate", "prompt-chunking/random", "--param", "prompt_tokens=12", "-o", problem])
        == 0
    )
    capsys.readouterr()
    assert run(["solve", problem, "--method", method, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(found["plan"]["chunks"]) == 12
    assert 0 < found["bound"] <= found["objective"]


def test_schema_and_methods(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the schema prints, and that size limits are in the method's own count."""
    assert run(["schema", "prompt-chunking"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["wait"]["enum"] == [
        "none",
        "overlap",
        "serial",
    ]
    assert run(["methods", "prompt-chunking"]) == 0
    assert "at most 16 places where a chunk may end" in capsys.readouterr().out
