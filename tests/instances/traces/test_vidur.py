"""Vidur's tables."""

from __future__ import annotations

from pathlib import Path

from strategies.traces import VIDUR

from specopt.instances.traces import read_trace


def test_values(tmp_path: Path) -> None:
    """Tests that the three columns are found beside an index without a name."""
    path = tmp_path / "vidur.csv"
    path.write_bytes(VIDUR)
    found = read_trace(path)
    assert found.format == "vidur"
    assert found.arrival_seconds.tolist() == [0.0, 0.75, 1.5]
    assert found.input_tokens.tolist() == [512, 20, 21]
    assert found.output_tokens.tolist() == [64, 30, 31]
