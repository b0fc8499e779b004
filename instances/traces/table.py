"""Traces that are CSV tables with a header: columns are found by name, whatever their order."""

from __future__ import annotations

import csv
from dataclasses import dataclass

from specopt.instances.reading.fields import CsvFile, Row
from specopt.instances.reading.lines import Lines
from specopt.instances.traces.clock import Clock
from specopt.instances.traces.rows import Rows
from specopt.models.fields import MAX_TOKENS

TOKENS = f"a whole number of tokens from 0 to {MAX_TOKENS:,}"
"""Expected content of a field of tokens, for messages."""

_DIGITS = len(str(MAX_TOKENS))


@dataclass(frozen=True)
class Table:
    """A format of CSV traces, described by its columns.

    Parameters
    ----------
    name
        Name for `--format`.
    arrival, input, output
        Columns of the time of arrival and of the tokens of prompt and response.
    time_unit
        Unit of the times, one of `TIME_UNITS`.
    is_guess
        Whether nothing says the unit of the times.
    """

    name: str
    arrival: str
    input: str
    output: str
    time_unit: str
    is_guess: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a file must have."""
        return self.arrival, self.input, self.output

    def recognises(self, first_line: str) -> bool:
        """Return whether a file with this first line has the columns."""
        try:
            header = [field.strip() for field in next(csv.reader([first_line], strict=True), [])]
        except csv.Error:
            return False
        return set(self.columns) <= set(header)

    def read(self, lines: Lines, rows: Rows) -> None:
        """Read the rows of a file until no more are wanted.

        Raises
        ------
        InvalidInput
            If the header lacks a column or has it twice, or a row is malformed; the message names
            line and column.
        """
        clock = Clock(self.time_unit)
        rows.guessed_unit = self.time_unit if self.is_guess else ""
        table = CsvFile(lines)
        table.need(*self.columns)
        for row in table:
            text = row.text_of(self.arrival)
            seconds = clock.seconds(text)
            if seconds is None:
                raise row.refuse(self.arrival, clock.expected, text)
            if not rows.add(seconds, _tokens(row, self.input), _tokens(row, self.output)):
                return


def _tokens(row: Row, name: str) -> int:
    """Return a number of tokens: no sign, no fraction, nothing but the ten digits."""
    text = row.text_of(name)
    if text.isdecimal() and text.isascii() and len(text) <= _DIGITS and int(text) <= MAX_TOKENS:
        return int(text)
    raise row.refuse(name, TOKENS, text)
