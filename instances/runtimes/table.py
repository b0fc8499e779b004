"""Reader for tables of measured times, which are CSV files with a header.

The times in several rows, for example one row for each layer of a model, can be summed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from specopt.instances.reading.fields import CsvFile, Row, decimal
from specopt.instances.reading.lines import Lines, open_lines
from specopt.models.arguments import integer, one_of
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints, describe
from specopt.models.reading import StrPath

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Length of each time unit, in seconds."""

MAX_ROWS = 200_000
MIN_WORK, MAX_WORK = 1e-9, 1e30
MIN_SECONDS, MAX_SECONDS = 1e-12, 1e9
REPEATS_APART = 1.5
"""Ratio of times with the same input above which a warning is issued.

A large ratio indicates that a filter may be missing.
"""

_SUFFIX = re.compile(r"(?:^|[_. (\[])(us|µs|ms|ns|seconds|sec|s)[)\]]?$", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """The roles of the columns in a table.

    Parameters
    ----------
    x
        Columns that contain the inputs of a fit.
    y
        Columns that contain times; several columns are summed.
    cached
        Column that contains the number of tokens cached before the pass, per request.
    batch
        Column that contains the number of requests in the pass.
    sum_over
        Column whose values label the parts of a pass, for example the names of layers. The time of
        a pass is the sum over all values. Every input needs a row for each value; several rows for
        the same value are averaged first.
    where
        Mapping from column names to required values; rows with other values are omitted.
    repeat
        Number of times that each duration is counted in a sum, such as the number of layers.
    repeats
        Mapping from particular values of `sum_over`, or particular columns of `y`, to the number of
        times that they are counted; overrides `repeat`.
    y_unit
        Unit of the times, a key of `UNITS`. None means seconds, and columns whose names indicate
        another unit are rejected.
    """

    x: tuple[str, ...]
    y: tuple[str, ...]
    cached: str | None = None
    batch: str | None = None
    sum_over: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    repeat: int = 1
    repeats: Mapping[str, int] = field(default_factory=dict)
    y_unit: str | None = None

    def __post_init__(self) -> None:
        for name, columns in (("x", self.x), ("y", self.y)):
            if not columns or any(not isinstance(one, str) or not one.strip() for one in columns):
                raise InvalidInput(f"{name}: expected names of columns, got {describe(columns)}")
        inputs = [*self.numbers, *([] if self.sum_over is None else [self.sum_over])]
        for names in (inputs, self.y):
            twice = next((name for name in names if list(names).count(name) > 1), None)
            if twice is not None:
                raise InvalidInput(
                    f"columns: expected each column once, got {describe(twice)} twice"
                )
        both = set(inputs) & set(self.y)
        if both:
            raise InvalidInput(
                f"y: expected times, got the column {describe(min(both))}, which is also an input"
            )
        if self.y_unit is not None:
            one_of("y_unit", self.y_unit, UNITS)
        for name, times in (
            ("repeat", self.repeat),
            *((f"repeat of {key}", one) for key, one in self.repeats.items()),
        ):
            integer(name, times, 0, 100_000)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the input columns, which contain numbers."""
        return (*self.x, *(name for name in (self.cached, self.batch) if name is not None))

    def times(self, name: str) -> int:
        """Return how many times a column of `y`, or a value of `sum_over`, is counted."""
        default = 1 if self.sum_over is not None and name in self.y else self.repeat
        return self.repeats.get(name, default)


@dataclass(frozen=True, kw_only=True, eq=False)
class RuntimeTable:
    """A table of measured passes, with the inputs and the duration of each pass.

    Parameters
    ----------
    columns
        Columns that were read.
    x
        Values of the input columns, shape (n, columns of x).
    cached
        Cached tokens per request, shape (n,); zeros if the table has no such column.
    batch
        Number of requests, shape (n,); ones if the table has no such column.
    seconds
        Duration of each pass, in seconds, > 0.
    lines
        Line number of each pass in the file; for a sum, the line number of the first row.
    source
        Name of the file.
    rows
        Number of rows in the file, and number of rows that have the values required by `where`.
    warnings
        Warnings that are shown to the user.
    """

    columns: TableColumns
    x: Floats
    cached: Floats
    batch: Floats
    seconds: Floats
    lines: Ints
    source: str
    rows: tuple[int, int]
    warnings: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def keys(self) -> Floats:
        """Inputs of each pass, including cached tokens and the batch size, shape (n, inputs)."""
        return np.column_stack([self.x, self.cached, self.batch])

    def inputs_at(self, row: int) -> dict[str, float]:
        """Return the inputs of one pass as a mapping from column names to values."""
        given = {self.columns.cached: self.cached, self.columns.batch: self.batch}
        found = dict(zip(self.columns.x, self.x[row].tolist(), strict=True))
        return found | {
            name: float(values[row]) for name, values in given.items() if name is not None
        }


def read_runtime_table(path: StrPath, columns: TableColumns) -> RuntimeTable:
    """Read measured times from a CSV file with a header.

    Byte-order marks, CRLF, blank lines and a missing final newline are accepted. Only the columns
    named in `columns` are read.

    Raises
    ------
    InvalidInput
        If the file cannot be read, lacks a column, has a row of the wrong length or a cell without
        a valid number, or if no row has the required values. The message states the line and the
        column.
    """
    where = os.fspath(path)
    seen = {name: dict[str, None]() for name in columns.where}
    found: list[_Row] = []
    count = 0
    with open_lines(path) as stream:
        table = CsvFile(Lines(stream, where))
        _check_header(table, columns)
        for row in table:
            count += 1
            cells = {name: row.text_of(name) for name in columns.where}
            for name, cell in cells.items():
                if len(seen[name]) < 20:
                    seen[name][cell] = None
            if not all(_same(cells[name], value) for name, value in columns.where.items()):
                continue
            if len(found) >= MAX_ROWS:
                raise InvalidInput(
                    f"{where}: line {row.line}: expected at most {MAX_ROWS:,} rows that match the"
                    " filter"
                )
            found.append(_read_row(row, columns))
    if not found and columns.where and count:
        wanted = ", ".join(f"{name}={value}" for name, value in columns.where.items())
        known = "; ".join(f"{name}: {', '.join(values)[:300]}" for name, values in seen.items())
        raise InvalidInput(f"{where}: no row has {wanted}; the table contains {known}")
    if not found:
        raise InvalidInput(f"{where}: expected at least one row below the header")
    part_of, *numbers = zip(*found, strict=True)
    lines, seconds, inputs = map(np.array, numbers)
    parts = columns.y if columns.sum_over is None else tuple(dict.fromkeys(part_of))
    unknown = next((name for name in columns.repeats if name not in (*parts, *columns.y)), None)
    if unknown is not None:
        raise InvalidInput(
            f"{where}: repeat: expected one of {', '.join(parts)[:300]}, got {describe(unknown)}"
        )
    if columns.sum_over is not None:
        index = {part: number for number, part in enumerate(parts)}
        part = np.array([index[name] for name in part_of])
        inputs, seconds, lines = _summed(where, columns, inputs, seconds, lines, part, parts)
    many = len(columns.x)
    return RuntimeTable(
        columns=columns,
        x=inputs[:, :many],
        cached=inputs[:, many] if columns.cached is not None else np.zeros(len(seconds)),
        batch=inputs[:, -1] if columns.batch is not None else np.ones(len(seconds)),
        seconds=seconds,
        lines=lines,
        source=where,
        rows=(count, len(found)),
        warnings=_apart(columns, inputs, seconds),
    )


_Row = tuple[str, int, float, list[float]]
"""Tuple (value of `sum_over`, line number, time in seconds, inputs) that describes a row."""


def _check_header(table: CsvFile, columns: TableColumns) -> None:
    over = () if columns.sum_over is None else (columns.sum_over,)
    table.need(*columns.numbers, *columns.y, *columns.where, *over)
    for name in columns.y:
        suffix = _SUFFIX.search(name)
        unit = suffix[1].lower() if suffix else "s"
        if columns.y_unit is None and unit not in ("s", "sec", "seconds"):
            raise InvalidInput(
                f"{table.lines.where}: line {table.line}: the name of column {name!r} does not"
                " indicate that the unit is seconds; specify the y-unit"
            )


def _read_row(row: Row, columns: TableColumns) -> _Row:
    scale = UNITS[columns.y_unit or "s"]
    inputs = []
    for name in columns.numbers:
        least = 1.0 if name == columns.batch else 0.0
        expected = f"a finite number >= {least:g}"
        number = row.within(name, expected, least, MAX_WORK)
        if 0.0 < number < MIN_WORK:
            raise row.refuse(name, expected, row.text_of(name))
        inputs.append(number)
    total = 0.0
    for name in columns.y:
        number = row.within(name, "a time >= 0", 0.0, MAX_SECONDS / scale)
        total += number * columns.times(name)
    if columns.sum_over is not None:
        part = row.text_of(columns.sum_over)
        return part, row.line, total * columns.times(part) * scale, inputs
    if total * scale < MIN_SECONDS:
        raise row.refuse(columns.y[0], "a time > 0", row.text_of(columns.y[0]))
    return "", row.line, total * scale, inputs


def _summed(
    where: str,
    columns: TableColumns,
    inputs: Floats,
    seconds: Floats,
    lines: Ints,
    part: Ints,
    parts: Sequence[str],
) -> tuple[Floats, Floats, Ints]:
    """Average the times for each input and each part of a pass, and sum the averages over the
    parts.
    """
    keys, first, group = np.unique(inputs, axis=0, return_index=True, return_inverse=True)
    shape = (len(keys), len(parts))
    if len(keys) * len(parts) > 50_000_000:
        raise InvalidInput(
            f"{where}: sum-over: expected a column with few values, got {len(parts):,} values in"
            f" {columns.sum_over!r}"
        )
    cells = group.reshape(-1) * len(parts) + part
    counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    sums = np.bincount(cells, seconds, counts.size).reshape(shape)
    if not counts.all():
        row, column = np.argwhere(counts == 0)[0]
        at = words_of(dict(zip(columns.numbers, keys[row], strict=True)))
        raise InvalidInput(
            f"{where}: line {lines[first[row]]}: expected a row with {columns.sum_over} ="
            f" {parts[column]} for {at}, as for other inputs"
        )
    total = (sums / counts).sum(axis=1)
    if not (total >= MIN_SECONDS).all():
        line = lines[first[int(np.argmin(total))]]
        raise InvalidInput(f"{where}: line {line}: expected times that sum to more than 0")
    return keys, total, lines[first]


def _apart(columns: TableColumns, inputs: Floats, seconds: Floats) -> tuple[str, ...]:
    """Return a warning if the times of rows with the same inputs differ too much."""
    keys, group = np.unique(inputs, axis=0, return_inverse=True)
    least = np.full(len(keys), np.inf)
    most = np.zeros(len(keys))
    np.minimum.at(least, group.reshape(-1), seconds)
    np.maximum.at(most, group.reshape(-1), seconds)
    worst = int(np.argmax(most / least))
    if most[worst] <= REPEATS_APART * least[worst]:
        return ()
    at = words_of(dict(zip(columns.numbers, keys[worst], strict=True)))
    return (
        f"rows with the same {at} take from {least[worst]:.4g} s to {most[worst]:.4g} s: "
        "if they were measured under different conditions, select rows with --where",
    )


def words_of(inputs: Mapping[str, float]) -> str:
    """Format the names and values of inputs for use in messages."""
    return ", ".join(f"{name} = {value:g}" for name, value in inputs.items())


def _same(cell: str, value: str) -> bool:
    """Return whether two cells contain the same string or the same number."""
    if cell == value:
        return True
    one, other = decimal(cell), decimal(value)
    return one is not None and one == other
