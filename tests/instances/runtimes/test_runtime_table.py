"""Tables of measured times: sums, filters, units, quirks of files, and what is no table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from specopt import InvalidInput
from specopt.instances.runtimes.table import RuntimeTable, TableColumns, read_runtime_table

PLAIN = b"tokens,seconds,device\n1,0.25,a\n2,0.5,a\n8,1.5e0,b\n"
LAYERS = b"layer,tokens,time_us\nmlp,1,10\nmlp,2,20\nembed,1,3\nembed,2,4\nmlp,1,12\n"


def read(path: Path, data: bytes, **columns: Any) -> RuntimeTable:
    """Write a file and read it."""
    file = path / "table.csv"
    file.write_bytes(data)
    return read_runtime_table(
        file, TableColumns(**({"x": ("tokens",), "y": ("seconds",)} | columns))
    )


def test_columns(tmp_path: Path) -> None:
    """Tests that columns are found by name, spaces around numbers or not, and that other columns
    do not matter.
    """
    found = read(tmp_path, PLAIN.replace(b",", b" ,\t"))
    assert found.x.tolist() == [[1.0], [2.0], [8.0]]
    assert found.seconds.tolist() == [0.25, 0.5, 1.5]
    assert (found.cached.tolist(), found.batch.tolist()) == ([0.0] * 3, [1.0] * 3)
    assert (found.rows, found.warnings) == ((3, 3), ())
    assert found.lines.tolist() == [2, 3, 4]


def test_filters(tmp_path: Path) -> None:
    """Tests that a filter keeps its rows, as text or as numbers, and that other rows need no
    numbers.
    """
    assert read(tmp_path, PLAIN, where={"device": "b"}).lines.tolist() == [4]
    assert read(tmp_path, PLAIN, where={"tokens": "2.0"}).lines.tolist() == [3]
    assert read(tmp_path, PLAIN + b"oops,oops,c\n", where={"device": "a"}).rows == (4, 2)
    with pytest.raises(InvalidInput, match=r"no row has device=c; the table contains device: a, b"):
        read(tmp_path, PLAIN, where={"device": "c"})


def test_units_and_sums(tmp_path: Path) -> None:
    """Tests that times are summed over columns, each as often as said, in their unit."""
    data = b"tokens,one,two,cached,batch\n4,1,10,7,2\n"
    found = read(tmp_path, data, y=("one", "two"), y_unit="ms", cached="cached", batch="batch")
    assert found.seconds.tolist() == pytest.approx([0.011])
    assert found.keys.tolist() == [[4.0, 7.0, 2.0]]
    found = read(tmp_path, data, y=("one", "two"), y_unit="us", repeat=3, repeats={"one": 5})
    assert found.seconds.tolist() == pytest.approx([35e-6])


def test_sums_over_layers(tmp_path: Path) -> None:
    """Tests that the time of a pass is the sum over its layers, each the mean of its rows, as often
    as said.
    """
    columns: dict[str, Any] = {"y": ("time_us",), "y_unit": "us", "sum_over": "layer"}
    found = read(tmp_path, LAYERS, **columns)
    assert found.x.tolist() == [[1.0], [2.0]]
    assert found.seconds.tolist() == pytest.approx([14e-6, 24e-6])
    assert found.lines.tolist() == [2, 3]
    assert read(tmp_path, LAYERS, **columns, repeat=64).seconds.tolist() == pytest.approx(
        [896e-6, 1536e-6]
    )
    once = read(tmp_path, LAYERS, **columns, repeat=64, repeats={"embed": 1})
    assert once.seconds.tolist() == pytest.approx([707e-6, 1284e-6])
    with pytest.raises(
        InvalidInput, match=r"line 7: expected a row with layer = embed for tokens = 3"
    ):
        read(tmp_path, LAYERS + b"mlp,3,1\n", **columns)
    with pytest.raises(InvalidInput, match=r"repeat: expected one of mlp, embed, got 'head'"):
        read(tmp_path, LAYERS, **columns, repeats={"head": 1})
    with pytest.raises(InvalidInput, match=r"line 2: expected times that sum to more than 0"):
        read(tmp_path, LAYERS, **columns, repeat=0)
    many = b"layer,tokens,time_us\n" + b"".join(b"%d,%d,1\n" % (i, i) for i in range(7100))
    with pytest.raises(
        InvalidInput,
        match=r"sum-over: expected a column with few values, got 7,100 values in 'layer'",
    ):
        read(tmp_path, many, **columns)


def test_rows_that_differ_are_told(tmp_path: Path) -> None:
    """Tests that rows of one input with far different times are told, as a filter may be
    missing.
    """
    assert (
        "same tokens = 1 take from 0.25 s to 1 s"
        in read(tmp_path, PLAIN + b"1,1.0,b\n").warnings[0]
    )
    assert read(tmp_path, PLAIN + b"1,0.3,b\n").warnings == ()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected a table, got an empty file"),
        (b"tokens,seconds\n", "expected at least one row below the header"),
        (
            b"tokens,time\n1,2\n",
            "line 1: expected exactly one column 'seconds', but the header has tokens, time",
        ),
        (b"tokens,seconds\n1,nan\n", "line 2, seconds: expected a time >= 0, got 'nan'"),
        (b"tokens,seconds\n1,-1\n", "line 2, seconds: expected a time >= 0, got '-1'"),
        (b"tokens,seconds\n1,0\n", "line 2, seconds: expected a time > 0, got '0'"),
        (b"tokens,seconds\n-1,1\n", "line 2, tokens: expected a finite number >= 0, got '-1'"),
        (b"tokens,seconds\nx,1\n", "line 2, tokens: expected a finite number >= 0, got 'x'"),
    ],
)
def test_bad_tables_name_line_and_column(tmp_path: Path, data: bytes, message: str) -> None:
    """Tests that a malformed table is refused with file, line and column, in one line."""
    with pytest.raises(
        InvalidInput, match=f"^{re.escape(str(tmp_path))}.*{re.escape(message)}"
    ) as caught:
        read(tmp_path, data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["time_us", "time (ms)", "latency.ns", "US"])
def test_units_in_names(tmp_path: Path, name: str) -> None:
    """Tests that a column that names another unit than seconds needs its unit said."""
    data = f"tokens,{name}\n1,2\n".encode()
    with pytest.raises(
        InvalidInput, match="does not indicate that the unit is seconds; specify the y-unit"
    ):
        read(tmp_path, data, y=(name,))
    assert read(tmp_path, data, y=(name,), y_unit="us").seconds.tolist() == pytest.approx([2e-6])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": ()}, "x: expected names"),
        ({"y": ("",)}, "y: expected names"),
        ({"x": ("a", "a")}, "'a' twice"),
        ({"x": ("a",), "cached": "a"}, "'a' twice"),
        ({"x": ("seconds",)}, "'seconds', which is also an input"),
        ({"y_unit": "h"}, "y_unit: expected one of s, ms, us"),
        ({"repeat": -1}, "repeat: expected an integer"),
        ({"repeats": {"a": True}}, "repeat of a: expected an integer"),
    ],
)
def test_bad_columns(columns: dict[str, Any], message: str) -> None:
    """Tests that columns that make no sense are refused by name."""
    with pytest.raises(InvalidInput, match=message):
        TableColumns(**({"x": ("tokens",), "y": ("seconds",)} | columns))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    """Tests that a missing file, a folder and an impossible path are refused."""
    columns = TableColumns(x=("a",), y=("b",))
    for path in (tmp_path / "none", tmp_path, "a\0b"):
        with pytest.raises(InvalidInput, match="cannot be read"):
            read_runtime_table(path, columns)
