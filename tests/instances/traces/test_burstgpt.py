"""BurstGPT, with old and new columns."""

from __future__ import annotations

from pathlib import Path

from strategies.traces import BURSTGPT, BURSTGPT_NEW

from specopt.instances.traces import read_trace


def test_six_columns(tmp_path: Path) -> None:
    """Tests that failed requests of the older form are dropped and counted, and that models are
    kept.
    """
    path = tmp_path / "burstgpt.csv"
    path.write_bytes(BURSTGPT)
    found = read_trace(path)
    assert found.format == "burstgpt"
    assert found.arrival_seconds.tolist() == [0.0, 113.0]
    assert found.input_tokens.tolist() == [472, 417]
    assert found.output_tokens.tolist() == [18, 276]
    assert found.names == ("ChatGPT", "GPT-4")
    assert (found.rows_read, found.dropped) == (4, (("0 output tokens", 2),))


def test_eight_columns(tmp_path: Path) -> None:
    """Tests that the newer form is read by name: not the elapsed time, and with a comma in
    quotes.
    """
    path = tmp_path / "burstgpt.csv"
    path.write_bytes(BURSTGPT_NEW)
    found = read_trace(path)
    assert found.format == "burstgpt"
    assert found.arrival_seconds.tolist() == [0.0, 2.0]
    assert found.input_tokens.tolist() == [10, 12]
    assert found.output_tokens.tolist() == [20, 22]
    assert found.dropped_rows == 1
