"""JSON lines of Mooncake and of Bailian."""

from __future__ import annotations

from pathlib import Path

import pytest
from strategies.traces import MOONCAKE

from specopt.instances.traces import read_trace


def test_values(tmp_path: Path) -> None:
    """Tests that milliseconds become seconds, that keys come in any order, and that block ids may
    be missing.
    """
    path = tmp_path / "mooncake.jsonl"
    path.write_bytes(MOONCAKE)
    found = read_trace(path)
    assert found.format == "mooncake"
    assert found.arrival_seconds.tolist() == [0.0, 0.027, 3.0275]
    assert found.input_tokens.tolist() == [6758, 10, 11]
    assert found.output_tokens.tolist() == [500, 1, 3]
    assert found.names is None


def test_windows_stop_reading(tmp_path: Path) -> None:
    """Tests that a line after the window is not looked at."""
    path = tmp_path / "mooncake.jsonl"
    path.write_bytes(MOONCAKE + b"half a li")
    assert len(read_trace(path, rows=3)) == 3


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
    assert "in ms, as they are read, its 2 requests arrive within 4 s" in guess
    assert read_trace(path, "bailian").guess == ""
    assert read_trace(path, "bailian").duration_seconds == 4000.0
    assert read_trace(path, "mooncake").guess == ""
