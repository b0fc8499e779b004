"""Traces that are CSV tables with a header: columns are found by name, whatever their order."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.instances.reading.csv_table import count_in, csv_rows, has_columns
from specopt.instances.reading.lines import Lines
from specopt.instances.traces.clock import Clock
from specopt.instances.traces.rows import Rows
from specopt.models.fields import MAX_TOKENS

_TOKENS = f"a whole number of tokens from 0 to {MAX_TOKENS:,}"


@dataclass(frozen=True)
class Table:
    """A format of CSV traces: which columns hold what.

    Parameters
    ----------
    name
        What `--format` calls it.
    arrival, input, output
        Columns of the time of arrival and of the tokens of prompt and response.
    time_unit
        Unit of the times, one of `TIME_UNITS`.
    label
        Column of the requests' names; None: they have none.
    """

    name: str
    arrival: str
    input: str
    output: str
    time_unit: str
    label: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a file must have."""
        return (self.arrival, self.input, self.output, *([] if self.label is None else [self.label]))

    def recognises(self, first_line: str) -> bool:
        """Tell whether a file with this first line has the columns."""
        return has_columns(first_line, self.columns)

    def read(self, lines: Lines, rows: Rows) -> None:
        """Read the rows of a file until no more are wanted.

        Raises
        ------
        InvalidInput
            If the header lacks a column or has it twice, or a row is malformed; the message names line and column.
        """
        clock = Clock(self.time_unit)
        for line, (arrival, inputs, outputs, *names) in csv_rows(lines, self.columns):
            seconds = clock.seconds(arrival)
            if seconds is None:
                raise lines.refuse(line, clock.expected, arrival, self.arrival)
            prompt, response = count_in(inputs, MAX_TOKENS), count_in(outputs, MAX_TOKENS)
            if prompt is None:
                raise lines.refuse(line, _TOKENS, inputs, self.input)
            if response is None:
                raise lines.refuse(line, _TOKENS, outputs, self.output)
            if not rows.add(seconds, prompt, response, names[0].strip() if names else None):
                return
