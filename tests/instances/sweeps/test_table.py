"""Sweeps as CSV tables: columns, quirks of files, what is dropped, what is refused, and back
again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.sweeps import read_sweep
from hypothesis import given
from hypothesis import strategies as st

from specopt.instances.sweeps import read_sweeps
from specopt.models.errors import InvalidInput
from specopt.models.sweep import MAX_ROWS, Condition, Measurement, Point, Setup, Sweep
from testbed.engine.tables import write_csv

PLAIN = (
    "concurrency,draft_length,output_tokens_per_second\n1,none,40\n1,3,61.5\n8,0,2.5e2\n8,0,251\n"
)
FULL = (
    "workload, mean_acceptance_length"
    ' ,repeat,draft_length,context_tokens,concurrency,output_tokens_per_second\n"a,'
    ' b",2.5,1,3,400,4,100\ncode,,second,none,4000,4,80\ncode,3.1,,5,4000,4,\n'
)


def run(
    concurrency: int, length: int | None, speed: float | None, accepted: float | None = None
) -> Measurement:
    """Return a run of a sweep without names and contexts."""
    return Measurement(Point(Condition(concurrency), length), speed, accepted)


def read(tmp_path: Path, content: str, workload: str | None = None) -> Sweep:
    """Write a file and read it."""
    path = tmp_path / "sweep.csv"
    path.write_text(content, newline="")
    return read_sweep(path, workload=workload)


QUIRKS = {
    "spaces": lambda text: text.replace(",", " ,\t"),
    "capitals": lambda text: text.replace("none", "None"),
    "whole numbers as others": lambda text: text.replace("\n1,", "\n1.0,"),
}


@pytest.mark.parametrize("quirk", QUIRKS)
def test_quirks_change_nothing(tmp_path: Path, quirk: str) -> None:
    """Tests that spaces, capitals and whole numbers with a decimal point make no difference."""
    found = read(tmp_path, QUIRKS[quirk](PLAIN))
    assert found == Sweep((run(1, None, 40.0), run(1, 3, 61.5), run(8, 0, 250.0), run(8, 0, 251.0)))


def test_columns_in_any_order(tmp_path: Path) -> None:
    """Tests that columns are found by name, and that a row may hold an acceptance alone."""
    found = read(tmp_path, FULL)
    assert found.measurements == (
        Measurement(Point(Condition(4, "a, b", 400), 3), 100.0, 2.5),
        Measurement(Point(Condition(4, "code", 4000), None), 80.0),
        Measurement(Point(Condition(4, "code", 4000), 5), None, 3.1),
    )
    assert read(tmp_path, FULL, workload="code").measurements == found.measurements[1:]
    with pytest.raises(InvalidInput, match=r"workload: expected one of a, b, code; got 'chat'"):
        read(tmp_path, FULL, workload="chat")


def test_rows_that_tell_nothing_are_counted(tmp_path: Path) -> None:
    """Tests that rows with zero or missing throughput are dropped and counted, and that some row
    must be left.
    """
    found = read(tmp_path, PLAIN + "8,3,0\n8,5,\n8,none,0.0\n")
    assert (len(found.measurements), found.notes) == (4, ("left out: 3 runs without throughput",))
    with pytest.raises(
        InvalidInput, match=r"at least one run with throughput; left out: 1 run without"
    ):
        read(tmp_path, "\n".join([PLAIN.splitlines()[0], "1,2,0"]))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("0,3,5", "line 6, concurrency: expected an integer from 1 to 65,536, got 0"),
        ("2.5,3,5", "line 6, concurrency: expected an integer, got '2.5'"),
        (",3,5", "line 6, concurrency: expected an integer, got ''"),
        ("1e300,3,5", "line 6, concurrency: expected an integer from 1"),
        ("1,-1,5", "line 6, draft_length: expected an integer from 0 to 1,000, got -1"),
        ("1,,5", "line 6, draft_length: expected an integer, or none, got ''"),
        ("1,off,5", "line 6, draft_length: expected an integer, or none, got 'off'"),
        ("1,3,-5", "line 6, output_tokens_per_second: expected a number in (0, 1e+18), got -5.0"),
        ("1,3,5e-324", "line 6, output_tokens_per_second: expected 0 or an absolute value >= "),
        (
            "1,3,nan",
            "line 6, output_tokens_per_second: expected a number or an empty field, got 'nan'",
        ),
        ("1,3,4,5", "line 6: expected 3 fields, as in the header"),
    ],
)
def test_bad_rows_name_line_and_column(tmp_path: Path, row: str, message: str) -> None:
    """Tests that a refused cell is named by file, line and column, with what was expected and what
    came.
    """
    with pytest.raises(InvalidInput) as refusal:
        read(tmp_path, PLAIN + row)
    assert f"sweep.csv: {message}" in str(refusal.value)


def test_columns_that_nothing_reads_are_left_out(tmp_path: Path) -> None:
    """Tests that other columns change nothing but a note, and that drafters, modes, times and
    energy are kept.
    """
    found = read(
        tmp_path,
        PLAIN.replace("second\n", "second,gpu,p95_tpot_ms\n")
        .replace("0\n", "0,H100,3\n")
        .replace("5\n", "5,H100,3\n")
        .replace("e2\n", "e2,H100,3\n")
        .replace("1\n", "1,H100,3\n"),
    )
    assert found.measurements == read(tmp_path, PLAIN).measurements
    assert found.notes == ("columns that are not used are ignored (gpu, p95_tpot_ms)",)
    header = (
        "concurrency,method,mode,topk,draft_length,output_tokens_per_second,p99_tpot_ms,watts\n"
    )
    found = read(
        tmp_path, header + "4,,,,none,80,9,300\n4,eagle3,adaptive,4,3,90,,\n4,mtp,,,3,85,,\n"
    )
    assert [m.setup for m in found.measurements] == [
        Setup(),
        Setup("eagle3", "adaptive", 4),
        Setup("mtp"),
    ]
    assert found.measurements[0].also == {"p99_tpot_ms": 9.0, "watts": 300.0}
    assert [len(found.of(setup).measurements) for setup in found.setups] == [2, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected a table, got an empty file"),
        (
            "concurrency,draft_length\n",
            "line 1: expected exactly one column 'output_tokens_per_second', but the header has",
        ),
        (
            PLAIN.replace("h,o", "h,context,o"),
            "line 1: expected each column to be one of concurrency, draft_length, output",
        ),
        (
            PLAIN.replace("h,o", "h,workload\x1b,o"),
            r"got 'workload\x1b'; rename this column to workload",
        ),
        (PLAIN.splitlines()[0], "expected at least one run with throughput"),
        (FULL + "code,,,none,,4,80\n", "context_tokens: specify it in all rows or in none"),
        (
            FULL.replace("2.5", "4.5"),
            "line 2, mean_acceptance_length: expected at most 4, the maximum per step",
        ),
        (
            FULL + "code,1.5,,none,4000,4,80\n",
            "line 5, mean_acceptance_length: expected at most 1, the maximum",
        ),
        (
            FULL.replace("code", "\x1b]0;t\x07"),
            "line 3, workload: expected a name of at most 200 printable characters",
        ),
        (FULL.replace("code", "c" * 201), "line 3, workload: expected a name of at most 200"),
        (PLAIN + "1,3,5\n" * MAX_ROWS, "sweep: expected 1 to 2,000 measurements, got 2,004"),
    ],
)
def test_bad_tables(tmp_path: Path, content: str, message: str) -> None:
    """Tests that files that are no sweeps are refused, and that nothing in them reaches a message
    unescaped.
    """
    with pytest.raises(InvalidInput) as refusal:
        read(tmp_path, content)
    assert message in str(refusal.value)
    assert str(refusal.value).isprintable()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """Tests that missing files and impossible paths are refused, and draft lengths given to a file
    that says them.
    """
    for path in (tmp_path / "missing.csv", "a\0b"):
        with pytest.raises(InvalidInput, match="cannot be read"):
            read_sweep(path)
    path = tmp_path / "sweep.csv"
    path.write_text(PLAIN)
    with pytest.raises(InvalidInput, match="draft_length: the file already contains it; omit @3"):
        read_sweep(path, draft_length=3)


def test_several_files_are_one_sweep(tmp_path: Path) -> None:
    """Tests that several files become one sweep, that its notes name them, and that each counts
    once.
    """
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text(PLAIN)
    other.write_text(PLAIN.splitlines()[0] + "\n16,3,900\n16,5,0\n")
    found = read_sweeps([one, str(other)])
    assert found.measurements == (*read_sweep(one).measurements, run(16, 3, 900.0))
    assert found.notes == (f"{other}: left out: 1 run without throughput",)
    assert read_sweeps([other]) == read_sweep(other)
    with pytest.raises(InvalidInput, match="the file is given twice"):
        read_sweeps([one, other, str(one)])


def conditions() -> st.SearchStrategy[Condition]:
    """Loads, all with a context."""
    names = st.text(st.characters(exclude_categories=("C", "Z")), max_size=5)
    return st.builds(Condition, st.integers(1, 99), names, st.integers(1, 999))


@given(
    st.lists(
        st.tuples(conditions(), st.none() | st.integers(0, 9), st.floats(1e-9, 1e17)), min_size=1
    ),
    st.data(),
)
def test_what_is_written_reads_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[Condition, int | None, float]],
    data: st.DataObject,
) -> None:
    """Tests that a sweep that was written reads as the same one, to the last digit."""
    runs = []
    for condition, length, speed in rows:
        accepted = data.draw(st.none() | st.floats(1, (length or 0) + 1))
        silent = bool(length) and accepted is not None and data.draw(st.booleans())
        runs.append(Measurement(Point(condition, length), None if silent else speed, accepted))
    path = tmp_path_factory.mktemp("round") / "sweep.csv"
    path.write_text(write_csv(Sweep(tuple(runs))), encoding="utf-8", newline="")
    assert read_sweep(path) == Sweep(tuple(runs))
