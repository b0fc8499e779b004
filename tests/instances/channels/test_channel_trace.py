"""Reading a device's log of iterations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specopt import InvalidInput
from specopt.instances.channels.trace import ChannelTrace, read_channel_trace

HEADER = "uplink_bits_per_second,confidence,accepted,drafted"


def write(folder: Path, *rows: str, header: str = HEADER) -> Path:
    """A file of these rows."""
    path = folder / "trace.csv"
    path.write_text("\n".join((header, *rows)) + "\n", encoding="utf-8")
    return path


def test_reads_columns_by_name(tmp_path: Path) -> None:
    """Tests that columns are found in any order, under other names, beside columns that do not matter."""
    path = write(
        tmp_path, '5, "x", 2, 1e6, 0.5, 100', "", "4,y,4,2e6,1,300",
        header="L, note , n, rate, conf, res",
    )  # fmt: skip
    names = {"uplink": "rate", "confidence": "conf", "accepted": "n", "drafted": "L", "resolution": "res"}
    trace = read_channel_trace(path, names)
    assert trace.uplink_bits_per_second.tolist() == [1e6, 2e6]
    assert trace.confidence.tolist() == [0.5, 1.0]
    assert trace.accepted.tolist() == [2, 4] and trace.drafted.tolist() == [5, 4]
    assert trace.resolution is not None and trace.resolution.tolist() == [100, 300]
    assert read_channel_trace(write(tmp_path, "1,0,0,0", "1,0,0,0")).resolution is None


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("1e6,0.5,2", ("line 3, drafted", "4 fields", "['1e6', '0.5', '2']")),
        ("fast,0.5,2,3", ("line 3, uplink_bits_per_second", "> 0", "fast")),
        ("nan,0.5,2,3", ("line 3, uplink_bits_per_second", "nan")),
        ("0,0.5,2,3", ("line 3, uplink_bits_per_second",)),
        ("inf,0.5,2,3", ("line 3, uplink_bits_per_second",)),
        ("1_000,0.5,2,3", ("line 3, uplink_bits_per_second", "1_000")),
        ("1e6,1.5,2,3", ("line 3, confidence", "from 0 to 1", "1.5")),
        ("1e6,0.5,2.0,3", ("line 3, accepted", "whole number", "2.0")),
        ("1e6,0.5,-1,3", ("line 3, accepted",)),
        ("1e6,0.5,4,3", ("line 3, accepted", "at most the 3 drafted", "4")),
        ("1e6,0.5,4,99999999", ("line 3, drafted", "10000")),
        ('1e6,0.5,"4,3', ("line 3", "CSV")),
    ],
)
def test_refuses_rows(tmp_path: Path, row: str, words: tuple[str, ...]) -> None:
    """Tests that a malformed row is refused by line and column."""
    with pytest.raises(InvalidInput) as caught:
        read_channel_trace(write(tmp_path, "1e6,0.5,2,3", row))
    assert all(word in str(caught.value) for word in ("trace.csv", *words)), caught.value


def test_refuses_headers_and_names(tmp_path: Path) -> None:
    """Tests that lacking, double and unknown columns are refused, and files without rows."""
    with pytest.raises(InvalidInput, match="line 1: expected one column 'drafted'"):
        read_channel_trace(write(tmp_path, header="uplink_bits_per_second,confidence,accepted"))
    with pytest.raises(InvalidInput, match="one column 'accepted', the header has it twice"):
        read_channel_trace(write(tmp_path, header=HEADER + ",accepted"))
    with pytest.raises(InvalidInput, match="at least 2 rows, got 1"):
        read_channel_trace(write(tmp_path, "1,0,0,0"))
    with pytest.raises(InvalidInput, match="keys among"):
        read_channel_trace(write(tmp_path), {"rate": "x"})
    with pytest.raises(InvalidInput, match="different columns"):
        read_channel_trace(write(tmp_path), {"uplink": "accepted"})
    with pytest.raises(InvalidInput, match="name of a column"):
        read_channel_trace(write(tmp_path), {"uplink": " "})


def test_trace_checks_itself() -> None:
    """Tests that arrays of different lengths and impossible counts are refused."""
    ones = np.ones(3)
    with pytest.raises(InvalidInput, match="confidence: expected 3 entries"):
        ChannelTrace(
            uplink_bits_per_second=ones, confidence=np.ones(2), accepted=np.ones(3, int), drafted=np.ones(3, int)
        )
    with pytest.raises(InvalidInput, match=r"accepted\[1\]: expected at most the 1 drafted"):
        ChannelTrace(
            uplink_bits_per_second=ones, confidence=ones, accepted=np.array([1, 2, 0]), drafted=np.array([1, 1, 1])
        )
