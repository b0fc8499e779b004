"""`specopt import`: what it prints where, what it writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.command_line import CommandLine
from strategies.traces import AZURE_2023, BURSTGPT

import specopt
from specopt.api.generate import from_trace
from specopt.instances.traces import read_trace

SERVING = "import azure.csv --as serving-latency"


@pytest.fixture(autouse=True)
def traces(tmp_path: Path) -> None:
    """A trace of three requests, and one of two requests and two that failed."""
    (tmp_path / "azure.csv").write_bytes(AZURE_2023)
    (tmp_path / "burstgpt.csv").write_bytes(BURSTGPT)


def test_problem_on_stdout(cli: CommandLine) -> None:
    """Tests that stdout holds nothing but the problem, and that stderr says what was read."""
    printed = cli(SERVING)
    problem = printed.json
    assert problem["input_tokens"] == [374, 12, 8000]
    assert problem["output_tokens"] == [44, 9, 1]
    assert (
        problem["notes"]
        == "Rows 0 to 2 of azure.csv; other values from serving-latency/paper-1, seed 0."
    )
    assert (
        printed.err
        == "azure.csv (azure): 3 rows read, 0 dropped; rows 0 to 2, 2 s of arrivals, become a"
        " serving-latency problem; not used: arrivals, because all requests wait at the start\n"
    )


def test_problem_in_a_file(cli: CommandLine) -> None:
    """Tests that a written problem is solved and judged, and that dropped rows are counted with the
    reason.
    """
    printed = cli("import burstgpt.csv --as verification-batch --seed 4 -o problem.json")
    assert printed.out == ""
    counted = "4 rows read, 2 dropped (2 with 0 output tokens); rows 0 to 1, 113 s of arrivals"
    assert counted in printed.err
    assert printed.err.endswith("written to problem.json\n")
    expected = from_trace("verification-batch").problem(read_trace("burstgpt.csv"), seed=4)
    assert specopt.load("problem.json") == expected
    cli("solve problem.json -o result.json")
    cli("evaluate problem.json result.json")


def test_windows(cli: CommandLine) -> None:
    """Tests that rows are chosen by number or by time."""
    for window in ("--start 1 --tasks 1", "--from-seconds 0.5 --to-seconds 1.5"):
        printed = cli(f"{SERVING} {window}")
        assert printed.json["input_tokens"] == [12]
        assert printed.json["notes"].startswith("Rows 1 to 1 of azure.csv;")
        assert "rows 1 to 1, 0 s of arrivals" in printed.err
    assert cli(f"{SERVING} --start 1").json["input_tokens"] == [12, 8000]
    assert cli(f"{SERVING} --to-seconds 2").json["input_tokens"] == [374, 12]


def test_fields_and_parameters(cli: CommandLine) -> None:
    """Tests that fields of the problem and parameters of the family are set, and the seed decides
    the channel.
    """
    command = f"{SERVING} --set output_lengths=known --set draft.layers=3 --param pair=68M-7B"
    problem = cli(f"{command} --family serving-latency/paper-1").json
    assert problem["output_lengths"] == "known"
    assert problem["draft"]["layers"] == 3
    assert problem["verify"]["name"] == "LLaMA-7B"
    assert cli(f"{command} --seed 1").json["snr"] != problem["snr"]
    warm = cli("import azure.csv --as verification-batch --family warm").json
    assert warm["cached_tokens"] == [374, 12, 8000]


def test_named_columns(cli: CommandLine) -> None:
    """Tests that columns and units of other tables are named, and that rows out of order are
    told.
    """
    Path("mine.csv").write_text("t,p,a\n2000,10,1\n1000,20,2\n")
    printed = cli(
        "import mine.csv --as serving-latency --column arrival=t --column input=p"
        " --column output=a --time-unit ms"
    )
    assert printed.json["input_tokens"] == [20, 10]
    assert (
        "mine.csv (csv): 2 rows read, 0 dropped, 1 out of order and sorted; rows 0 to 1, 1 s of"
        " arrivals" in printed.err
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "import azure.csv --as fair-goodput",
            "kind: expected one of serving-latency, continuous-serving, verification-b",
        ),
        ("import azure.csv", "Missing option '--as'"),
        (f"{SERVING} --tasks 4", "3 usable rows of the trace (0 to 2), got rows 0 to 3"),
        (f"{SERVING} --start 3", "got rows from 3 on"),
        (f"{SERVING} --tasks 0", "--tasks: expected an integer >= 1, got 0"),
        (f"{SERVING} --tasks -1", "--tasks"),
        (f"{SERVING} --start 1 --to-seconds 2", "rows by time, --start and --tasks by number"),
        (f"{SERVING} --from-seconds 3", "the trace lasts 2 s), got 3 to inf"),
        (f"{SERVING} --from-seconds soon", "--from-seconds"),
        (f"{SERVING} --family warm", "family: expected paper-1"),
        (f"{SERVING} --param tasks=3", "tasks: the value comes from the trace"),
        (f"{SERVING} --param pear=3", "--param pear"),
        (f"{SERVING} --set colour=red", "colour: unknown field"),
        (f"{SERVING} --set snr=[1.0]", "snr"),
        (f"{SERVING} --format vidur", "line 1: expected exactly one column 'arrived_at'"),
        (f"{SERVING} --format xml", "format: expected one of azure, burstgpt, mooncake"),
        (f"{SERVING} --column arrival", "--column: expected name=value"),
        (f"{SERVING} --column when=t", "columns: expected each key to be one of"),
        (f"{SERVING} --time-unit h", "time_unit: expected one of"),
        (f"{SERVING} -o /nowhere/x.json", "cannot be written"),
        (f"{SERVING} -o azure.csv", "would overwrite"),
        (
            "import half.csv --as serving-latency",
            "half.csv: line 5, ContextTokens: expected 3 fields",
        ),
        (
            "import none.csv --as serving-latency",
            "none.csv: cannot be read (No such file or directory)",
        ),
    ],
)
def test_refusals(cli: CommandLine, line: str, message: str) -> None:
    """Tests that bad input and bad usage are one line on stderr, and exit 2."""
    Path("half.csv").write_bytes(AZURE_2023 + b"\n2031-02-04 00:0")
    cli.refuses(line, message)
    assert Path("azure.csv").read_bytes() == AZURE_2023
