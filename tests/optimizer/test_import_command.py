"""`specopt import`: what it prints where, what it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from strategies.traces import AZURE_2023, BURSTGPT

import specopt
from specopt.api.generate import from_trace
from specopt.commands.cli import run
from specopt.instances.traces import read_trace


@pytest.fixture
def azure(tmp_path: Path) -> Path:
    """A trace of three requests."""
    path = tmp_path / "azure.csv"
    path.write_bytes(AZURE_2023)
    return path


@pytest.fixture
def burstgpt(tmp_path: Path) -> Path:
    """A trace of two requests, and two that failed."""
    path = tmp_path / "burstgpt.csv"
    path.write_bytes(BURSTGPT)
    return path


def imported(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[dict[str, Any], str]:
    """Import a trace; return the problem on stdout and what stderr says."""
    assert run(["import", *map(str, arguments)]) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


def test_problem_on_stdout(azure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that stdout holds nothing but the problem, and that stderr says what was read."""
    problem, said = imported(capsys, azure, "--as", "serving-latency")
    assert problem["input_tokens"] == [374, 12, 8000]
    assert problem["output_tokens"] == [44, 9, 1]
    assert (
        problem["notes"]
        == "Rows 0 to 2 of azure.csv; all else from serving-latency/paper-1, seed 0."
    )
    assert (
        said == "azure.csv (azure): 3 rows read, 0 dropped; rows 0 to 2, 2 s of arrivals, become a"
        " serving-latency problem; not used: arrivals: all requests are taken to wait at the"
        " start\n"
    )


def test_problem_in_a_file(
    burstgpt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a written problem is solved and judged, and that dropped rows are counted with the
    reason.
    """
    target, result = tmp_path / "problem.json", tmp_path / "result.json"
    assert (
        run(
            [
                "import",
                str(burstgpt),
                "--as",
                "verification-batch",
                "--seed",
                "4",
                "-o",
                str(target),
            ]
        )
        == 0
    )
    captured = capsys.readouterr()
    assert captured.out == ""
    assert (
        "4 rows read, 2 dropped (2 with 0 output tokens); rows 0 to 1, 113 s of arrivals"
        in captured.err
    )
    assert captured.err.endswith(f"written to {target}\n")
    assert specopt.load(target) == from_trace("verification-batch").problem(
        read_trace(burstgpt), seed=4
    )
    assert run(["solve", str(target), "-o", str(result)]) == 0
    assert run(["evaluate", str(target), str(result)]) == 0


def test_windows(azure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that rows are chosen by number or by time."""
    for window in (("--start", 1, "--tasks", 1), ("--from-seconds", 0.5, "--to-seconds", 1.5)):
        problem, said = imported(capsys, azure, "--as", "serving-latency", *window)
        assert problem["input_tokens"] == [12]
        assert problem["notes"].startswith("Rows 1 to 1 of azure.csv;")
        assert "rows 1 to 1, 0 s of arrivals" in said
    assert imported(capsys, azure, "--as", "serving-latency", "--start", 1)[0]["input_tokens"] == [
        12,
        8000,
    ]
    assert imported(capsys, azure, "--as", "serving-latency", "--to-seconds", 2)[0][
        "input_tokens"
    ] == [374, 12]


def test_fields_and_parameters(azure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that fields of the problem and parameters of the family are set, and the seed decides
    the channel.
    """
    common = (
        azure,
        "--as",
        "serving-latency",
        "--set",
        "output_lengths=known",
        "--set",
        "draft.layers=3",
    )
    problem, _ = imported(
        capsys, *common, "--param", "pair=68M-7B", "--family", "serving-latency/paper-1"
    )
    assert problem["output_lengths"] == "known"
    assert problem["draft"]["layers"] == 3
    assert problem["verify"]["name"] == "LLaMA-7B"
    other, _ = imported(capsys, *common, "--param", "pair=68M-7B", "--seed", 1)
    assert other["snr"] != problem["snr"]
    assert imported(capsys, azure, "--as", "verification-batch", "--family", "warm")[0][
        "cached_tokens"
    ] == [
        374,
        12,
        8000,
    ]


def test_named_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that columns and units of other tables are named, and that rows out of order are
    told.
    """
    path = tmp_path / "mine.csv"
    path.write_text("t,p,a\n2000,10,1\n1000,20,2\n")
    columns = [
        f"--column={key}={name}"
        for key, name in (("arrival", "t"), ("input", "p"), ("output", "a"))
    ]
    problem, said = imported(capsys, path, "--as", "serving-latency", *columns, "--time-unit", "ms")
    assert problem["input_tokens"] == [20, 10]
    assert (
        "mine.csv (csv): 2 rows read, 0 dropped, 1 out of order and sorted; rows 0 to 1, 1 s of"
        " arrivals" in said
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--as", "fair-goodput"],
            "kind: expected one of serving-latency, continuous-serving, verification-b",
        ),
        ([], "Missing option '--as'"),
        (
            ["--as", "serving-latency", "--tasks", "4"],
            "3 usable rows of the trace (0 to 2), got rows 0 to 3",
        ),
        (["--as", "serving-latency", "--start", "3"], "got rows from 3 on"),
        (["--as", "serving-latency", "--tasks", "0"], "--tasks: expected an integer >= 1, got 0"),
        (["--as", "serving-latency", "--tasks", "-1"], "--tasks"),
        (
            ["--as", "serving-latency", "--start", "1", "--to-seconds", "2"],
            "by time or by number, got both",
        ),
        (["--as", "serving-latency", "--from-seconds", "3"], "the trace lasts 2 s), got 3 to inf"),
        (["--as", "serving-latency", "--from-seconds", "soon"], "--from-seconds"),
        (["--as", "serving-latency", "--family", "warm"], "family: expected one of paper-1"),
        (["--as", "serving-latency", "--param", "tasks=3"], "tasks: comes from the trace"),
        (["--as", "serving-latency", "--param", "pear=3"], "--param pear"),
        (["--as", "serving-latency", "--set", "colour=red"], "colour: unknown field"),
        (["--as", "serving-latency", "--set", "snr=[1.0]"], "snr"),
        (
            ["--as", "serving-latency", "--format", "vidur"],
            "line 1: expected one column 'arrived_at'",
        ),
        (
            ["--as", "serving-latency", "--format", "xml"],
            "format: expected one of azure, burstgpt, mooncake",
        ),
        (["--as", "serving-latency", "--column", "arrival"], "--column: expected name=value"),
        (["--as", "serving-latency", "--column", "when=t"], "columns: expected keys among"),
        (["--as", "serving-latency", "--time-unit", "h"], "time_unit: expected one of"),
        (["--as", "serving-latency", "-o", "/nowhere/x.json"], "cannot be written"),
    ],
)
def test_refusals(
    azure: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that bad input and bad usage are one line on stderr, and exit 2."""
    assert run(["import", str(azure), *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("specopt: ") and captured.err.count("\n") == 1
    assert message in captured.err


def test_the_trace_is_not_overwritten(azure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the trace itself cannot be the target."""
    assert run(["import", str(azure), "--as", "serving-latency", "-o", str(azure)]) == 2
    assert "would overwrite" in capsys.readouterr().err
    assert azure.read_bytes() == AZURE_2023


def test_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a malformed row and a missing file are one line on stderr, and exit 2."""
    path = tmp_path / "half.csv"
    path.write_bytes(AZURE_2023 + b"\n2031-02-04 00:0")
    assert run(["import", str(path), "--as", "serving-latency"]) == 2
    assert "half.csv: line 5, ContextTokens: expected 3 fields" in capsys.readouterr().err
    assert run(["import", str(tmp_path / "none.csv"), "--as", "serving-latency"]) == 2
    assert "none.csv: cannot be read (No such file or directory)" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the command explains itself, and is listed."""
    assert run(["import", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "specopt import" in shown and "--from-seconds" in shown
    assert run(["--help"]) == 0
    assert "import" in capsys.readouterr().out
