"""Mooncake's JSON lines."""

from __future__ import annotations

from pathlib import Path

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
