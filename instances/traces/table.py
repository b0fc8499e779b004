"""Reader for traces that are CSV tables with a header.

The supported formats are those of Azure, BurstGPT and the simulator Vidur, and tables whose column
names are specified by the user. Columns may appear in any order.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from specopt.instances.reading.fields import CsvFile, Row
from specopt.instances.reading.lines import Lines
from specopt.instances.traces.clock import DATE, Clock
from specopt.instances.traces.rows import Row as TraceRow
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe

TOKENS = f"a whole number of tokens from 0 to {MAX_TOKENS:,}"
"""Description of the valid values of a token count, used in error messages."""

_DIGITS = len(str(MAX_TOKENS))


@dataclass(frozen=True)
class Table:
    """A format of CSV traces, described by its columns.

    Parameters
    ----------
    name
        Name of the format, as used with `--format`.
    arrival
        Name of the column that contains arrival times.
    input
        Name of the column that contains the number of prompt tokens.
    output
        Name of the column that contains the number of response tokens.
    time_unit
        Unit of the times, one of `TIME_UNITS`.
    guessed_unit
        Unit of the times if the unit is a guess; otherwise empty.
    """

    name: str
    arrival: str
    input: str
    output: str
    time_unit: str
    guessed_unit: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that a file must contain."""
        return self.arrival, self.input, self.output

    def recognises(self, first_line: str) -> bool:
        """Return whether the first line of a file contains all columns of this format."""
        try:
            header = [field.strip() for field in next(csv.reader([first_line], strict=True), [])]
        except csv.Error:
            return False
        return set(self.columns) <= set(header)

    def read(self, lines: Lines) -> Iterator[TraceRow]:
        """Yield the rows in a file.

        Raises
        ------
        InvalidInput
            If the header does not contain each column exactly once, or if a row is malformed. The
            message states the line and the column.
        """
        clock = Clock(self.time_unit)
        table = CsvFile(lines)
        table.need(*self.columns)
        for row in table:
            text = row.text_of(self.arrival)
            seconds = clock.seconds(text)
            if seconds is None:
                raise row.refuse(self.arrival, clock.expected, text)
            yield seconds, _tokens(row, self.input), _tokens(row, self.output)


def _tokens(row: Row, name: str) -> int:
    """Return the number of tokens in a field, which must contain only decimal digits."""
    text = row.text_of(name)
    if text.isdecimal() and text.isascii() and len(text) <= _DIGITS and int(text) <= MAX_TOKENS:
        return int(text)
    raise row.refuse(name, TOKENS, text)


# Azure's dates have seven decimals and no time zone in 2023, and six or no decimals and +00:00 in
# 2024. BurstGPT contains requests to ChatGPT and GPT-4. Its older files have six columns; newer
# files also have `Session ID` and `Elapsed time`. Failed requests have no response tokens. Tables
# of Vidur that contain only lengths have no arrivals.
AZURE = Table(
    name="azure",
    arrival="TIMESTAMP",
    input="ContextTokens",
    output="GeneratedTokens",
    time_unit=DATE,
)
BURSTGPT = Table(
    name="burstgpt",
    arrival="Timestamp",
    input="Request tokens",
    output="Response tokens",
    time_unit="s",
)
VIDUR = Table(
    name="vidur",
    arrival="arrived_at",
    input="num_prefill_tokens",
    output="num_decode_tokens",
    time_unit="s",
)

COLUMNS = {"arrival": "arrival_seconds", "input": "input_tokens", "output": "output_tokens"}
"""Default names of the columns."""


def plain_csv(columns: Mapping[str, str] | None = None, time_unit: str | None = None) -> Table:
    """Return the format of a CSV table with the given column names.

    Parameters
    ----------
    columns
        Names of the columns "arrival", "input" and "output"; the default names are in `COLUMNS`.
    time_unit
        Unit of the times: "s" (default), "ms", "us", "ns" or "date".

    Raises
    ------
    InvalidInput
        If the unit or a key is unknown, if a name is blank, or if two keys specify the same column.
    """
    unit = Clock("s" if time_unit is None else time_unit).unit
    for key, name in (columns or {}).items():
        if key not in COLUMNS:
            raise InvalidInput(
                f"columns: expected each key to be one of {', '.join(COLUMNS)}, got {describe(key)}"
            )
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput(
                f"columns: expected the name of a column for {key}, got {describe(name)}"
            )
    names = {key: name.strip() for key, name in {**COLUMNS, **(columns or {})}.items()}
    if len(set(names.values())) < len(names):
        raise InvalidInput(
            f"columns: expected {len(names)} distinct columns, got {', '.join(names.values())}"
        )
    is_guess = time_unit is None and not names["arrival"].endswith(("seconds", "_s"))
    return Table(name="csv", time_unit=unit, guessed_unit=unit if is_guess else "", **names)


PLAIN_CSV = plain_csv()
