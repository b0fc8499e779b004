"""Traces as values: what they hold, and windows of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from specopt import InvalidInput
from specopt.instances.traces import Trace


def trace(**changes: Any) -> Trace:
    """Five requests, two of them at once."""
    fields: dict[str, Any] = {
        "arrival_seconds": [0.0, 1.0, 1.0, 2.5, 10.0],
        "input_tokens": [5, 6, 7, 8, 9],
        "output_tokens": [1, 2, 3, 4, 5],
    }
    return Trace(**{**fields, **changes})


def test_window() -> None:
    """Tests that a window holds its rows, starts its clock at zero, and says where it began."""
    found = trace(start=100).window(1, 3)
    assert found.arrival_seconds.tolist() == [0.0, 0.0, 1.5]
    assert found.input_tokens.tolist() == [6, 7, 8]
    assert found.output_tokens.tolist() == [2, 3, 4]
    assert found.start == 101
    assert trace().window(3).input_tokens.tolist() == [8, 9]
    assert len(trace().window()) == 5


@pytest.mark.parametrize(
    ("start", "rows", "message"),
    [
        (0, 6, r"within the 5 usable rows of the trace \(0 to 4\), got rows 0 to 5"),
        (5, None, "got rows from 5 on"),
        (-1, 2, "start: expected an integer >= 0, got -1"),
        (0, 0, "rows: expected an integer >= 1, got 0"),
        (True, 1, "start: expected an integer >= 0, got True"),
        (0, 1.5, "rows: expected an integer >= 1, got 1.5"),
    ],
)
def test_windows_that_do_not_exist(start: Any, rows: Any, message: str) -> None:
    """Tests that a window outside the trace is refused with the number of rows that there are."""
    with pytest.raises(InvalidInput, match=message):
        trace().window(start, rows)


def test_between() -> None:
    """Tests that windows by time hold their first moment and not their last."""
    assert trace().between(1.0, 2.5).input_tokens.tolist() == [6, 7]
    assert trace().between(0.5, float("inf")).input_tokens.tolist() == [6, 7, 8, 9]
    assert trace().between(1.0, 2.5).start == 1
    for low, high in ((3.0, 4.0), (2.0, 1.0), (11.0, 20.0), (float("nan"), float("inf"))):
        with pytest.raises(InvalidInput, match="the trace lasts 10 s"):
            trace().between(low, high)


def test_rate() -> None:
    """Tests that the rate counts gaps, and that requests that come at once have none."""
    assert trace().requests_per_second == pytest.approx(0.4)
    with pytest.raises(InvalidInput, match="two distinct arrival times"):
        _ = trace(arrival_seconds=[0.0] * 5).requests_per_second


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"arrival_seconds": [0.0, 2.0, 1.0, 3.0, 4.0]},
            "arrival_seconds: expected times that never decrease",
        ),
        ({"arrival_seconds": [0.0, 2.0, 3.0, 3.0, float("nan")]}, "arrival_seconds"),
        ({"input_tokens": [1, 2, 3]}, "input_tokens: expected 5 entries"),
        ({"output_tokens": [1, 2, 3, 4, 0]}, "output_tokens"),
        ({"input_tokens": [1, 2, 3, 4, 10_000_001]}, "input_tokens"),
        ({"arrival_seconds": [], "input_tokens": [], "output_tokens": []}, "arrival_seconds"),
    ],
)
def test_what_cannot_be_a_trace(changes: dict[str, Any], message: str) -> None:
    """Tests that a trace refuses what is none, by name."""
    with pytest.raises(InvalidInput, match=message):
        trace(**changes)


def test_frozen() -> None:
    """Tests that neither a trace nor its arrays change, and that dropped rows are summed."""
    found = trace(dropped=(("0 output tokens", 2), ("0 input tokens", 1)))
    assert found.dropped_rows == 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.start = 3  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        found.input_tokens[0] = 3
