"""Plain CSV tables, with columns that the user names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specopt import InvalidInput
from specopt.instances.traces import read_trace

NAMED = {"arrival": "when", "input": "prompt", "output": "answer"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with columns of its own."""
    path = tmp_path / "requests.csv"
    path.write_text("who,when,prompt,answer\nAda,1500,10,1\nBen,3000,20,2\n")
    return path


def test_named_columns(table: Path) -> None:
    """Tests that columns and the unit of time are those that the user names."""
    found = read_trace(table, columns=NAMED, time_unit="ms")
    assert found.format == "csv"
    assert found.arrival_seconds.tolist() == [0.0, 1.5]
    assert found.input_tokens.tolist() == [10, 20]
    assert found.output_tokens.tolist() == [1, 2]
    assert read_trace(table, "csv", columns=NAMED).arrival_seconds.tolist() == [0.0, 1500.0]
    assert "read in s," in read_trace(table, columns=NAMED).guess
    assert read_trace(table, columns=NAMED, time_unit="s").guess == ""


def test_dates(tmp_path: Path) -> None:
    """Tests that times can be dates, and that columns not named are called as usual."""
    path = tmp_path / "requests.csv"
    path.write_text(
        "t,input_tokens,output_tokens\n2024-05-10 10:00:00,1,2\n2024-05-10T10:00:01.5,3,4\n"
    )
    assert read_trace(
        path, columns={"arrival": "t"}, time_unit="date"
    ).arrival_seconds.tolist() == [0.0, 1.5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"columns": {"arrives": "when"}},
            "columns: expected each key to be one of arrival, input, output, got 'arrives'",
        ),
        (
            {"columns": {"arrival": " "}},
            "columns: expected the name of a column for arrival, got ' '",
        ),
        ({"columns": {"arrival": 1}}, "columns: expected the name of a column for arrival, got 1"),
        (
            {"columns": {**NAMED, "input": "answer"}},
            "columns: expected 3 distinct columns, got when, answer, ans",
        ),
        (
            {"columns": {**NAMED, "input": "prompts"}},
            "line 1: expected exactly one column 'prompts', but the header has who, wh",
        ),
        (
            {"columns": NAMED, "time_unit": "minutes"},
            "time_unit: expected one of s, ms, us, ns, date, got 'minutes'",
        ),
        (
            {"columns": NAMED, "time_unit": "date"},
            "line 2, when: expected a date and time such as .*, got '1500'",
        ),
    ],
)
def test_wrong_columns(table: Path, options: dict[str, Any], message: str) -> None:
    """Tests that columns that do not exist, or say nothing, are refused by name."""
    with pytest.raises(InvalidInput, match=message):
        read_trace(table, **options)
