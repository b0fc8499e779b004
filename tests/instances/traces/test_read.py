"""Reading traces: every format, their quirks, and what is no trace."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from strategies.traces import AZURE_2023, BURSTGPT, EXAMPLES, MOONCAKE, PLAIN_CSV

from specopt import InvalidInput
from specopt.instances.reading.lines import LONGEST_LINE
from specopt.instances.traces import FORMATS, Trace, read_trace

HEADER = b"arrival_seconds,input_tokens,output_tokens\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test writes its trace."""
    return tmp_path / "trace"


def read(path: Path, data: bytes, *arguments: Any, **options: Any) -> Trace:
    """Write a file and read it."""
    path.write_bytes(data)
    return read_trace(path, *arguments, **options)


def refused(path: Path, data: bytes, message: str, **options: Any) -> None:
    """Check that a file is refused with its own name and this message, on one line."""
    with pytest.raises(InvalidInput, match=f"^{re.escape(str(path))}: .*{message}") as caught:
        read(path, data, **options)
    assert "\n" not in str(caught.value)


def content(trace: Trace) -> tuple[Any, ...]:
    """Return what a trace holds, as values that compare."""
    columns = (trace.arrival_seconds, trace.input_tokens, trace.output_tokens)
    return (*(column.tolist() for column in columns), trace.dropped, trace.format)


Expected = tuple[list[float], list[int], list[int], int]
VALUES: dict[str, Expected] = {
    "azure-2023": ([0.0, 1.0000001, 2.0], [374, 12, 8000], [44, 9, 1], 0),
    "azure-2024": ([0.0, 0.75, 1.25], [100, 200, 300], [10, 20, 30], 0),
    "burstgpt": ([0.0, 113.0], [472, 417], [18, 276], 2),
    "burstgpt-new": ([0.0, 2.0], [10, 12], [20, 22], 1),
    "mooncake": ([0.0, 0.027, 3.0275], [6758, 10, 11], [500, 1, 3], 0),
    "vidur": ([0.0, 0.75, 1.5], [512, 20, 21], [64, 30, 31], 0),
    "csv": ([0.0, 0.5], [7, 9], [8, 10], 0),
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_values(path: Path, example: str) -> None:
    """Tests that every format is recognised and read: dates to the seventh digit, failed requests
    dropped and counted, columns that are not needed passed over.
    """
    *values, failed = VALUES[example]
    dropped = (("0 output tokens", failed),) if failed else ()
    expected = (*values, dropped, example.partition("-")[0])
    assert content(read(path, EXAMPLES[example])) == expected


@pytest.mark.parametrize("example", EXAMPLES)
def test_quirks_change_nothing(path: Path, example: str) -> None:
    """Tests that a byte-order mark, blank lines and CRLF make no difference, nor naming the
    format.
    """
    expected = content(read(path, EXAMPLES[example]))
    lines = b"\r\n \t\r\n".join(EXAMPLES[example].splitlines())
    found = read(path, b"\xef\xbb\xbf\n" + lines, example.partition("-")[0])
    assert content(found) == expected
    assert found.source == "trace"


@pytest.mark.parametrize("example", [name for name in EXAMPLES if name != "mooncake"])
def test_columns_are_found_by_name(path: Path, example: str) -> None:
    """Tests that quoted fields, spaces around them and the order of columns make no difference."""
    table = list(csv.reader(EXAMPLES[example].decode().splitlines()))
    mirrored = io.StringIO()
    csv.writer(mirrored, quoting=csv.QUOTE_ALL).writerows(
        [f" {field}\t" for field in reversed(row)] for row in table
    )
    found = content(read(path, mirrored.getvalue().encode()))
    assert found == content(read(path, EXAMPLES[example]))


@pytest.mark.parametrize("format", [None, *FORMATS])
def test_empty_files(path: Path, format: str | None) -> None:
    """Tests that a file without content is called empty, whatever the format."""
    refused(path, b"\n\r\n  \n", "expected a trace, got an empty file", format=format)


@pytest.mark.parametrize("example", [name for name in EXAMPLES if name != "mooncake"])
def test_header_alone(path: Path, example: str) -> None:
    """Tests that a table without rows is refused."""
    refused(path, EXAMPLES[example].splitlines()[0], "expected at least one row, got none")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            b"1,2.0,3",
            (
                r"line 2, input_tokens: expected a whole number of tokens from 0 to 10,000,000, got"
                r" '2\.0'"
            ),
        ),
        (b"1,2,3e2", "line 2, output_tokens: .*got '3e2'"),
        (b"1,-2,3", "line 2, input_tokens: .*got '-2'"),
        (b"1,+2,3", "line 2, input_tokens: .*got '\\+2'"),
        (b"1,2_0,3", "line 2, input_tokens: .*got '2_0'"),
        (b"1,,3", "line 2, input_tokens: .*got ''"),
        (b"1,10000001,3", "line 2, input_tokens: .*got '10000001'"),
        (b"1," + b"9" * 5000 + b",3", "line 2, input_tokens: .*got '999"),
        ("1,٣,3".encode(), "line 2, input_tokens: .*got '٣'"),
        (
            b"soon,2,3",
            "line 2, arrival_seconds: expected a time in s of less than 1e\\+11, got 'soon'",
        ),
        (b"1700000000000,2,3", "line 2, arrival_seconds: expected a time in s"),
        (b"2023-11-16 18:15:46,2,3", "line 2, arrival_seconds: expected a time in s"),
        (b'1,"2,3', "line 2: expected a row of a CSV file: unexpected end of data"),
        (b'1,"2\n2",3', "line 2, input_tokens: .*got '2.n2'"),
    ],
)
def test_malformed_rows_name_their_line(path: Path, row: bytes, message: str) -> None:
    """Tests that a malformed row names its line and column, what was expected and what came."""
    refused(path, HEADER + row, message)
    refused(path, b"\r\n" + HEADER + b"0,1,1\n\n" + row, message.replace("line 2", "line 5"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            b'{"timestamp": 0, "input_length": 5',
            "line 2: expected one JSON object with unique keys, got",
        ),
        (b"[1, 2]", "line 2: expected one JSON object"),
        (b"[" * 100_000, "line 2: expected one JSON object"),
        (
            b'{"timestamp": 0, "timestamp": 0, "input_length": 5, "output_length": 5}',
            "unique keys",
        ),
        (
            b'{"timestamp": 0, "input_length": 5}',
            "line 2, output_length: expected the fields timestamp, input_len",
        ),
        (
            b'{"timestamp": 0, "input_length": 5.0, "output_length": 5}',
            "line 2, input_length: .*tokens.*got 5.0",
        ),
        (
            b'{"timestamp": 0, "input_length": 5, "output_length": true}',
            "line 2, output_length: .*got True",
        ),
        (
            b'{"timestamp": 0, "input_length": -5, "output_length": 1}',
            "line 2, input_length: .*got -5",
        ),
        (
            b'{"timestamp": 0, "input_length": [[]], "output_length": 1}',
            "line 2, input_length: .*got 'list'",
        ),
        (
            b'{"timestamp": 0, "input_length": 10000001, "output_length": 1}',
            "line 2, input_length: .*got 10000001",
        ),
        (
            b'{"timestamp": NaN, "input_length": 5, "output_length": 1}',
            "line 2, timestamp: expected a time in ms.*nan",
        ),
        (
            b'{"timestamp": true, "input_length": 5, "output_length": 1}',
            "line 2, timestamp: .*got True",
        ),
        (
            b'{"timestamp": "0", "input_length": 5, "output_length": 1}',
            "line 2, timestamp: .*got '0'",
        ),
        (
            b'{"timestamp": 1' + b"0" * 400 + b', "input_length": 5, "output_length": 1}',
            "line 2, timestamp: .*got 1000",
        ),
        (
            b'{"timestamp": 1' + b"0" * 9999 + b', "input_length": 5, "output_length": 1}',
            "line 2: expected one JSON",
        ),
    ],
)
def test_malformed_objects_name_their_line(path: Path, line: bytes, message: str) -> None:
    """Tests that a malformed JSON line names its line and field, what was expected and what
    came.
    """
    refused(path, MOONCAKE.splitlines(keepends=True)[0] + line, message)


@pytest.mark.parametrize(
    ("format", "data", "message"),
    [
        (
            None,
            b"a,b,c\n1,2,3\n",
            "line 1: expected the columns of a known trace, got 'a,b,c'; known traces: azure",
        ),
        (None, b"\n\n\x00\x01\x02", "line 3: expected text, got 'a NUL byte'"),
        (None, b"\x80\n", "line 1: expected text in UTF-8, got 'the byte 0x80'"),
        (None, b"x" * (LONGEST_LINE + 5), "line 1: expected a line of fewer than"),
        (None, b'"', "line 1: expected the columns of a known trace"),
        (
            None,
            b"5,ChatGPT,472,18,490,Conversation log\n",
            "line 1: expected the columns of a known trace",
        ),
        (
            None,
            b"num_prefill_tokens,num_decode_tokens\n1,2\n",
            "line 1: expected the columns of a known trace",
        ),
        (
            None,
            HEADER.strip() + b",arrived_at,num_prefill_tokens,num_decode_tokens\n",
            "line 1: .*vidur and csv",
        ),
        (
            "azure",
            BURSTGPT,
            "line 1: expected exactly one column 'TIMESTAMP', but the header has Timestamp,",
        ),
        ("mooncake", AZURE_2023, "line 1: expected one JSON object"),
    ],
)
def test_other_files(path: Path, format: str | None, data: bytes, message: str) -> None:
    """Tests that files in no format, in several, or in another than the one named are refused."""
    refused(path, data, message, format=format)


def test_failed_rows(path: Path) -> None:
    """Tests that rows without tokens are dropped and counted by reason, and that a file of them
    alone is refused.
    """
    found = read(path, HEADER + b"0,5,0\n1,0,5\n2,5,6\n3,0,0\n4,7,8\n")
    assert found.arrival_seconds.tolist() == [0.0, 2.0]
    assert found.rows_read == 5
    assert dict(found.dropped) == {"0 output tokens": 2, "0 input tokens": 1}
    refused(
        path,
        HEADER + b"0,5,0\n1,0,5\n",
        "all 2 were dropped: 1 with 0 output tokens, 1 with 0 input tokens",
    )


def test_rows_out_of_order(path: Path) -> None:
    """Tests that rows are sorted by arrival, ties in the order of the file, and counted."""
    found = read(path, HEADER + b"5,1,1\n3,2,2\n3,3,3\n9,4,4\n-1,5,5\n")
    assert found.arrival_seconds.tolist() == [0.0, 4.0, 4.0, 6.0, 10.0]
    assert found.input_tokens.tolist() == [5, 2, 3, 1, 4]
    assert found.out_of_order == 2
    ties = read(path, HEADER + b"".join(b"%d,%d,1\n" % (row % 2, row) for row in range(1, 101)))
    assert ties.input_tokens.tolist() == [*range(2, 101, 2), *range(1, 101, 2)]


def test_windows_stop_reading(path: Path) -> None:
    """Tests that a window counts usable rows in the file's order, and that what comes after it is
    not looked at.
    """
    found = read(path, HEADER + b"0,1,1\n1,2,0\n2,3,3\n9,4,4\n8,5,5\nnonsense\n", start=1, rows=3)
    assert found.input_tokens.tolist() == [3, 5, 4]
    assert found.arrival_seconds.tolist() == [0.0, 6.0, 7.0]
    assert (found.start, found.rows_read, found.dropped_rows) == (1, 5, 1)
    assert len(read(path, MOONCAKE + b"half a li", rows=3)) == 3
    refused(
        path,
        HEADER + b"0,1,1\n1,2,0\n2,3,3\n",
        r"2 usable rows of the trace \(0 to 1\), got rows 1 to 2 \(3 read",
        start=1,
        rows=2,
    )
    refused(path, PLAIN_CSV, "got rows from 2 on", start=2)


@pytest.mark.parametrize("options", [{"start": -1}, {"rows": 0}, {"start": 0.5}, {"rows": True}])
def test_windows_are_checked(path: Path, options: dict[str, Any]) -> None:
    """Tests that a window that is none is refused before the file is read."""
    with pytest.raises(InvalidInput, match=f"^{next(iter(options))}: expected an integer"):
        read_trace(path, **options)


def test_files_that_cannot_be_read(path: Path, tmp_path: Path) -> None:
    """Tests that a missing file, a folder and an unknown format are bad input."""
    for place in (path, tmp_path):
        with pytest.raises(InvalidInput, match="cannot be read"):
            read_trace(place)
    with pytest.raises(
        InvalidInput,
        match="format: expected one of azure, burstgpt, mooncake, bailian, vidur, csv, got 'xml'",
    ):
        read_trace(path, "xml")
    with pytest.raises(InvalidInput, match="only with the format csv, got azure"):
        read_trace(path, "azure", columns={"arrival": "t"})
