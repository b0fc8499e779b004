"""Units of times in traces of JSON lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from strategies.traces import MOONCAKE

from specopt.instances.traces import read_trace

BAILIAN = Path(__file__).parents[2] / "data" / "field" / "bailian-trace.jsonl"


def test_turns_of_chats_are_in_seconds() -> None:
    """Tests that a trace of chats with turns is read in seconds, and that nothing is guessed."""
    found = read_trace(BAILIAN)
    assert (found.format, len(found), found.guess) == ("bailian", 12, "")
    assert found.duration_seconds == pytest.approx(3.281)


def test_a_guessed_unit_is_said(tmp_path: Path) -> None:
    """Tests that the unit of lines that no field tells apart is called a guess, with the length of
    the trace, and that a named format is none.
    """
    path = tmp_path / "mooncake.jsonl"
    path.write_bytes(MOONCAKE)
    assert read_trace(path).guess == ""
    bare = '{"timestamp": %s, "input_length": 10, "output_length": 5}\n'
    path.write_text(bare % 0 + bare % 4000)
    guess = read_trace(path).guess
    assert "read in ms, the 2 requests arrive within 4 s" in guess
    assert read_trace(path, "bailian").guess == ""
    assert read_trace(path, "bailian").duration_seconds == 4000.0
    assert read_trace(path, "mooncake").guess == ""
