"""Tables of measured times: CSV files with a header, read strictly, summed over layers where they
hold layers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from specopt.instances.reading.fields import CsvFile, Row, decimal
from specopt.instances.reading.lines import Lines, open_lines
from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints, describe
from specopt.models.reading import StrPath

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Units of times, in seconds."""

MAX_ROWS = 200_000
MIN_WORK, MAX_WORK = 1e-9, 1e30
MIN_SECONDS, MAX_SECONDS = 1e-12, 1e9
REPEATS_APART = 1.5
"""Rows of one input whose times differ by more than this factor are warned of: a filter may be
missing.
"""

_SUFFIX = re.compile(r"(?:^|[_. (\[])(us|µs|ms|ns|seconds|sec|s)[)\]]?$", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """Roles of the columns of a table.

    Parameters
    ----------
    x
        Inputs of a fit.
    y
        Times; several are summed.
    cached
        Tokens cached before the pass, per request.
    batch
        Requests in the pass.
    sum_over
        A column, such as the layer's name, over whose values the time of a pass is summed. Every
        input needs a row for each value; several rows for one value are averaged first.
    where
        Values that other columns must have, by column; other rows are left out.
    repeat
        How often each time counts in a sum, such as the number of layers.
    repeats
        The same for single values of `sum_over`, or for single columns of `y`.
    y_unit
        One of `UNITS`; None: seconds, unless the column's name says otherwise, which is refused.
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
        if self.y_unit is not None and self.y_unit not in UNITS:
            raise InvalidInput(
                f"y_unit: expected one of {', '.join(UNITS)}, got {describe(self.y_unit)}"
            )
        for name, times in (
            ("repeat", self.repeat),
            *((f"repeat of {key}", one) for key, one in self.repeats.items()),
        ):
            integer(name, times, 0, 100_000)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of inputs that hold numbers."""
        return (*self.x, *(name for name in (self.cached, self.batch) if name is not None))


@dataclass(frozen=True, kw_only=True, eq=False)
class RuntimeTable:
    """Measured passes: inputs and seconds.

    Parameters
    ----------
    columns
        What was read.
    x
        Inputs, shape (n, columns of x).
    cached, batch
        Shape (n,); zeros and ones where no column says them.
    seconds
        Time of each pass, > 0.
    lines
        Line of the file that each came from; the first one of a sum.
    source
        The file.
    rows
        Rows of the file, and rows that fulfilled `where`.
    warnings
        What a reader should know.
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
        """All inputs, shape (n, inputs)."""
        return np.column_stack([self.x, self.cached, self.batch])

    def inputs_at(self, row: int) -> dict[str, float]:
        """Return the inputs of one pass by column."""
        given = {self.columns.cached: self.cached, self.columns.batch: self.batch}
        found = dict(zip(self.columns.x, self.x[row].tolist(), strict=True))
        return found | {
            name: float(values[row]) for name, values in given.items() if name is not None
        }


def read_runtime_table(path: StrPath, columns: TableColumns) -> RuntimeTable:
    """Read measured times from a CSV file with a header.

    Byte-order marks, CRLF, blank lines and a missing last newline are fine. Only the columns named
    are looked at.

    Raises
    ------
    InvalidInput
        If the file cannot be read, lacks a column, has a row of another length or a cell that is no
        number of its kind, or if no row fulfils the filter. The message names line and column.
    """
    with open_lines(path) as stream:
        reader = _Reader(Lines(stream, os.fspath(path)), columns)
        reader.read()
    return reader.table(os.fspath(path))


class _Reader:
    """One file while it is read."""

    def __init__(self, lines: Lines, columns: TableColumns) -> None:
        self.lines, self.columns = lines, columns
        self.scale = UNITS[columns.y_unit or "s"]
        self.inputs: list[tuple[float, ...]] = []
        self.parts: list[str] = []
        self.times: list[float] = []
        self.numbers: list[int] = []
        self.rows = 0
        self.seen: dict[str, dict[str, None]] = {name: {} for name in columns.where}

    def read(self) -> None:
        """Collect the rows that fulfil the filter."""
        table = CsvFile(self.lines)
        self._check_header(table)
        for row in table:
            self.rows += 1
            self._row(row)

    def _check_header(self, table: CsvFile) -> None:
        columns, line = self.columns, table.line
        wanted = [*columns.numbers, *columns.y, *columns.where]
        if columns.sum_over is not None:
            wanted.append(columns.sum_over)
        table.need(*wanted)
        for name in columns.y:
            suffix = _SUFFIX.search(name)
            unit = suffix[1].lower().replace("µ", "u") if suffix else "s"
            if columns.y_unit is None and unit not in ("s", "sec", "seconds"):
                raise self._refuse(
                    f"line {line}: the column {name!r} is not in seconds by its name: say the"
                    " y-unit"
                )

    def _row(self, row: Row) -> None:
        columns, line = self.columns, row.line
        taken = True
        for name, value in columns.where.items():
            cell = row.text_of(name)
            if len(self.seen[name]) < 20:
                self.seen[name][cell] = None
            taken = taken and _same(cell, value)
        if not taken:
            return
        if len(self.times) >= MAX_ROWS:
            raise self._refuse(
                f"line {line}: expected at most {MAX_ROWS:,} rows that fulfil the filter"
            )
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
            number = row.within(name, "a time >= 0", 0.0, MAX_SECONDS / self.scale)
            total += number * self._times(name)
        part = "" if columns.sum_over is None else row.text_of(columns.sum_over)
        if columns.sum_over is not None:
            total *= self._times(part)
        elif total * self.scale < MIN_SECONDS:
            raise row.refuse(columns.y[0], "a time > 0", row.text_of(columns.y[0]))
        self.inputs.append(tuple(inputs))
        self.parts.append(part)
        self.times.append(total * self.scale)
        self.numbers.append(line)

    def _times(self, name: str) -> int:
        """Return how often a time counts: of a column, or of a value of `sum_over`, each once."""
        columns = self.columns
        default = 1 if columns.sum_over is not None and name in columns.y else columns.repeat
        return columns.repeats.get(name, default)

    def table(self, path: str) -> RuntimeTable:
        """Return the table that was read."""
        columns = self.columns
        if not self.times:
            if columns.where and self.rows:
                wanted = ", ".join(f"{name}={value}" for name, value in columns.where.items())
                seen = "; ".join(
                    f"{name}: {', '.join(values)[:300]}" for name, values in self.seen.items()
                )
                raise self._refuse(f"no row has {wanted}; there are {seen}")
            raise self._refuse("expected at least one row below the header")
        parts = list(dict.fromkeys(self.parts)) if columns.sum_over is not None else columns.y
        unknown = next(
            (name for name in columns.repeats if name not in parts and name not in columns.y), None
        )
        if unknown is not None:
            raise self._refuse(
                f"repeat: expected one of {', '.join(parts)[:300]}, got {describe(unknown)}"
            )
        inputs = np.array(self.inputs)
        seconds = np.array(self.times)
        lines = np.array(self.numbers, np.int64)
        if columns.sum_over is not None:
            inputs, seconds, lines = self._summed(inputs, seconds, lines, parts)
        many = len(columns.x)
        cached = inputs[:, many] if columns.cached is not None else np.zeros(len(seconds))
        batch = inputs[:, -1] if columns.batch is not None else np.ones(len(seconds))
        return RuntimeTable(
            columns=columns,
            x=inputs[:, :many],
            cached=cached,
            batch=batch,
            seconds=seconds,
            lines=lines,
            source=path,
            rows=(self.rows, len(self.times)),
            warnings=tuple(self._apart(inputs, seconds)),
        )

    def _summed(
        self, inputs: Floats, seconds: Floats, lines: Ints, parts: Sequence[str]
    ) -> tuple[Floats, Floats, Ints]:
        """Average the rows of each input and part, and sum over the parts."""
        keys, first, where = np.unique(inputs, axis=0, return_index=True, return_inverse=True)
        where = where.reshape(-1)
        index = {part: number for number, part in enumerate(parts)}
        columns = np.array([index[part] for part in self.parts])
        shape = (len(keys), len(parts))
        if len(keys) * len(parts) > 50_000_000:
            raise self._refuse(
                f"sum-over: expected few values, got {len(parts):,} of {self.columns.sum_over!r}"
            )
        sums, counts = np.zeros(shape), np.zeros(shape)
        np.add.at(sums, (where, columns), seconds)
        np.add.at(counts, (where, columns), 1.0)
        if not counts.all():
            row, column = map(int, np.argwhere(counts == 0.0)[0])
            at = words_of(dict(zip(self.columns.numbers, keys[row], strict=True)))
            raise self._refuse(
                f"line {lines[first[row]]}: expected a row with {self.columns.sum_over} ="
                f" {parts[column]} for {at}, as for other inputs"
            )
        total = (sums / counts).sum(axis=1)
        if not (total >= MIN_SECONDS).all():
            raise self._refuse(
                f"line {lines[first[int(np.argmin(total))]]}: expected times that sum to more"
                " than 0"
            )
        return keys, total, lines[first]

    def _apart(self, inputs: Floats, seconds: Floats) -> list[str]:
        _, where = np.unique(inputs, axis=0, return_inverse=True)
        where = where.reshape(-1)
        least = np.full(where.max() + 1, np.inf)
        most = np.zeros(where.max() + 1)
        np.minimum.at(least, where, seconds)
        np.maximum.at(most, where, seconds)
        apart = most / least
        worst = int(np.argmax(apart))
        if apart[worst] <= REPEATS_APART:
            return []
        row = inputs[int(np.argmax(where == worst))]
        at = words_of(dict(zip(self.columns.numbers, row, strict=True)))
        return [
            f"rows with the same {at} take from {least[worst]:.4g} s to {most[worst]:.4g} s: "
            "if they were measured under different conditions, select rows with --where"
        ]

    def _refuse(self, text: str) -> InvalidInput:
        return InvalidInput(f"{self.lines.where}: {text}")


def words_of(inputs: Mapping[str, float]) -> str:
    """Return inputs by name, for messages."""
    return ", ".join(f"{name} = {value:g}" for name, value in inputs.items())


def _same(cell: str, value: str) -> bool:
    """Compare as text, or as numbers where both are."""
    if cell == value:
        return True
    one, other = decimal(cell), decimal(value)
    return one is not None and one == other
