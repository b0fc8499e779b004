"""Reading traces: every format, their quirks, and what is no trace."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies.traces import AZURE_2023, BURSTGPT, EXAMPLES, MOONCAKE, PLAIN_CSV, mutated

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


QUIRKS = {
    "as it is": lambda data: data,
    "CRLF": lambda data: data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
    "LF": lambda data: data.replace(b"\r\n", b"\n"),
    "CR": lambda data: data.replace(b"\r\n", b"\n").replace(b"\n", b"\r"),
    "no newline at the end": lambda data: data.rstrip(b"\r\n"),
    "a newline at the end": lambda data: data.rstrip(b"\r\n") + b"\r\n",
    "byte-order mark": lambda data: b"\xef\xbb\xbf" + data,
    "blank lines": lambda data: b"\n  \r\n" + data.replace(b"\n", b"\n\r\n \t\n") + b"\n\n",
}


@pytest.mark.parametrize("quirk", QUIRKS)
@pytest.mark.parametrize("example", EXAMPLES)
def test_quirks_change_nothing(path: Path, example: str, quirk: str) -> None:
    """Tests that line ends, blank lines, a byte-order mark and a missing newline make no
    difference, nor naming it.
    """
    expected = read(path, EXAMPLES[example])
    name = example.partition("-")[0]
    for found in (
        read(path, QUIRKS[quirk](EXAMPLES[example])),
        read(path, QUIRKS[quirk](EXAMPLES[example]), name),
    ):
        assert found.arrival_seconds.tolist() == expected.arrival_seconds.tolist()
        assert found.input_tokens.tolist() == expected.input_tokens.tolist()
        assert found.output_tokens.tolist() == expected.output_tokens.tolist()
        assert (found.names, found.rows_read, found.dropped) == (
            expected.names,
            expected.rows_read,
            expected.dropped,
        )
        assert (found.format, found.source) == (name, "trace")


@pytest.mark.parametrize("example", [name for name in EXAMPLES if name != "mooncake"])
def test_columns_are_found_by_name(path: Path, example: str) -> None:
    """Tests that quoted fields, spaces around them and the order of columns make no difference."""
    expected = read(path, EXAMPLES[example])
    table = list(csv.reader(EXAMPLES[example].decode().splitlines()))
    mirrored = io.StringIO()
    csv.writer(mirrored, quoting=csv.QUOTE_ALL).writerows(
        [f" {field}\t" for field in reversed(row)] for row in table
    )
    found = read(path, mirrored.getvalue().encode())
    assert found.arrival_seconds.tolist() == expected.arrival_seconds.tolist()
    assert found.input_tokens.tolist() == expected.input_tokens.tolist()
    assert found.output_tokens.tolist() == expected.output_tokens.tolist()
    assert found.names == expected.names


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"\n\r\n  \n"])
@pytest.mark.parametrize("format", [None, *FORMATS])
def test_empty_files(path: Path, data: bytes, format: str | None) -> None:
    """Tests that a file without content is called empty, whatever the format."""
    refused(path, data, "expected a trace, got an empty file", format=format)


@pytest.mark.parametrize("example", [name for name in EXAMPLES if name != "mooncake"])
def test_header_alone(path: Path, example: str) -> None:
    """Tests that a table without rows is refused."""
    refused(path, EXAMPLES[example].splitlines()[0], "expected at least one row, got none")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"1,2", r"line 2, output_tokens: expected 3 fields, as in the header, got \['1', '2'\]"),
        (b"1", "line 2, input_tokens: expected 3 fields"),
        (b"1,2,3,4", "line 2: expected 3 fields, as in the header"),
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
        (b'1,"2"x,3', "line 2: expected a row of a CSV file: ',' expected after"),
        (b'1,"2,3', "line 2: expected a row of a CSV file: unexpected end of data"),
        (b'1,"2,3\n4,5,6\n', "line 2: expected a row of a CSV file: unexpected end of data"),
        (b'1,"2\n2",3', "line 2, input_tokens: .*got '2.n2'"),
        (b"1,2\x00,3", "line 2: expected text, got 'a NUL byte'"),
        (b"1,2,3\xff", "line 2: expected text in UTF-8, got 'the byte 0xff'"),
        (
            b"1,2,3 " + b" " * LONGEST_LINE,
            "line 2: expected a line of less than 1,000,000 characters",
        ),
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
            "line 2: expected one JSON object, no key twice, got",
        ),
        (b"[1, 2]", "line 2: expected one JSON object"),
        (b"[" * 100_000, "line 2: expected one JSON object"),
        (
            b'{"timestamp": 0, "timestamp": 0, "input_length": 5, "output_length": 5}',
            "no key twice",
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
            "line 1: expected the columns of a known trace, got 'a,b,c'; known are azure",
        ),
        (None, b"\n\n\x00\x01\x02", "line 3: expected text, got 'a NUL byte'"),
        (None, b"\xff\xfea\x00,\x00", "line 1: expected text, got 'a NUL byte'"),
        (None, b"\x80\n", "line 1: expected text in UTF-8, got 'the byte 0x80'"),
        (None, b"x" * (LONGEST_LINE + 5), "line 1: expected a line of less than"),
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
        ("azure", BURSTGPT, "line 1: expected one column 'TIMESTAMP', the header has Timestamp,"),
        ("mooncake", AZURE_2023, "line 1: expected one JSON object"),
        (
            "csv",
            b"arrival_seconds,input_tokens,output_tokens,input_tokens\n1,2,3,4\n",
            "'input_tokens'.*has it twice",
        ),
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
        "but all 2 are dropped: 1 with 0 output tokens, 1 with 0 input tokens",
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
    with pytest.raises(
        InvalidInput, match="columns, time_unit: expected the format csv, got azure"
    ):
        read_trace(path, "azure", columns={"arrival": "t"})


def is_read_or_refused(path: Path, data: bytes, format: str | None) -> None:
    """Check that a file gives a trace that keeps its promises, or bad input on one line that names
    the file.
    """
    try:
        found = read(path, data, format)
    except InvalidInput as error:
        assert str(path) in str(error)
        assert len(str(error).splitlines()) == 1
        return
    assert len(found) >= 1
    assert found.rows_read == len(found) + found.dropped_rows
    assert found.input_tokens.min() >= 1 and found.output_tokens.min() >= 1
    assert found.arrival_seconds[0] == 0.0
    assert found.names is None or len(found.names) == len(found)
    assert found.format in FORMATS


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.parametrize("format", [None, *FORMATS])
@given(
    data=st.one_of(
        st.binary(max_size=200),
        st.text(alphabet='{}[]",:.\r\n 0123456789ae-_', max_size=80).map(str.encode),
    )
)
def test_arbitrary_bytes(path: Path, format: str | None, data: bytes) -> None:
    """Tests that arbitrary bytes are a trace or bad input, for every reader."""
    is_read_or_refused(path, data, format)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.parametrize("example", EXAMPLES)
@given(data=st.data())
def test_mutated_traces(path: Path, example: str, data: st.DataObject) -> None:
    """Tests that traces with something broken are a trace or bad input, recognised or named."""
    broken = data.draw(mutated(EXAMPLES[example]))
    is_read_or_refused(path, broken, data.draw(st.sampled_from([None, example.partition("-")[0]])))
