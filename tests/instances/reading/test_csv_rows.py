"""Rows of CSV files with a header, as all readers of tables get them."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from specopt.instances.reading.fields import CsvFile, decimal
from specopt.instances.reading.lines import LONGEST_LINE, Lines, open_lines
from specopt.models.errors import InvalidInput


def read(folder: Path, data: bytes) -> list[tuple[int, list[str]]]:
    """Write a file and return its rows."""
    path = folder / "f.csv"
    path.write_bytes(data)
    with open_lines(path) as stream:
        table = CsvFile(Lines(stream, "f.csv"))
        rows = [(row.line, [row.values[name] for name in table.header]) for row in table]
        return [(table.line, table.header), *rows]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"a,b\n1,2\n3,4\n", [1, 2, 3]),
        (b"a,b\r\n1,2\r\n3,4\r\n", [1, 2, 3]),
        (b"a,b\r1,2\r3,4\r", [1, 2, 3]),
        (b"a,b\n1,2\n3,4", [1, 2, 3]),
        (b"\xef\xbb\xbfa,b\n1,2\n3,4\n", [1, 2, 3]),
        (b"\n  \r\na,b\n\n1,2\n \t\n3,4\n\n", [3, 5, 7]),
        (b'"a", b\t\n"1",2\n3,"4"\n', [1, 2, 3]),
    ],
)
def test_quirks_change_nothing(tmp_path: Path, data: bytes, lines: list[int]) -> None:
    """Tests that line ends, blank lines, a byte-order mark, quotes, spaces in the header and a
    missing newline make no difference.
    """
    rows = [["a", "b"], ["1", "2"], ["3", "4"]]
    assert read(tmp_path, data) == list(zip(lines, rows, strict=True))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected a table, got an empty file"),
        (b"\xef\xbb\xbf\n\n  \n", "expected a table, got an empty file"),
        (b"\na,b\n1,2\n3\n", "line 4, b: expected 2 fields, as in the header, got ['3']"),
        (b"a,b\n1,2,3\n", "line 2: expected 2 fields, as in the header, got"),
        (b'a,b\n1,"2\n', "line 2: expected a row of a CSV file: unexpected end of data"),
        (b'a,b\n1,"2\n3,4\n', "line 2: expected a row of a CSV file: unexpected end of data"),
        (b'a,b\n1,"2"x\n', "line 2: expected a row of a CSV file: ',' expected after"),
        (b"a,b\n1,\0\n", "line 2: expected text, got 'a NUL byte'"),
        (b"a,b\n1,\xff\n", "line 2: expected text in UTF-8, got 'the byte 0xff'"),
        (b"a,b\n1," + b" " * LONGEST_LINE, "line 2: expected a line of fewer than 1,000,000 char"),
    ],
)
def test_malformed_rows_name_their_line(tmp_path: Path, data: bytes, message: str) -> None:
    """Tests that a file without a header and a malformed row are refused, the row by its line."""
    with pytest.raises(InvalidInput, match=re.escape(f"f.csv: {message}")):
        read(tmp_path, data)


@pytest.mark.parametrize(
    ("header", "often"), [("a,b,a", "has it twice"), ("c,d\x1b", r"has c, d\x1b")]
)
def test_columns_that_are_not_there_once(header: str, often: str) -> None:
    """Tests that a column that is missing or there twice is refused."""
    message = re.escape(f"f.csv: line 1: expected exactly one column 'a', but the header {often}")
    with pytest.raises(InvalidInput, match=message):
        CsvFile(Lines(io.StringIO(header), "f.csv")).need("a")


@pytest.mark.parametrize(
    "text", ["", "x", "nan", "inf", "1e999", "1_0", "0x10", "\u0663", "1" * 61]
)
def test_what_is_no_decimal(text: str) -> None:
    """Tests that words, other notations, other digits and what no float holds are no numbers."""
    assert decimal(text) is None
    assert decimal(" -1.5e0\t") == -1.5
