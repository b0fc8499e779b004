"""Reader for trace files in any known format."""

from __future__ import annotations

import os
from collections.abc import Mapping

from specopt.instances.reading.lines import Lines, open_lines
from specopt.instances.traces.mooncake import BAILIAN, MOONCAKE, UNMARKED, JsonLines
from specopt.instances.traces.rows import collected
from specopt.instances.traces.table import AZURE, BURSTGPT, PLAIN_CSV, VIDUR, Table, plain_csv
from specopt.instances.traces.trace import Trace, check_window
from specopt.models.arguments import one_of
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.reading import StrPath

Format = Table | JsonLines
FORMATS: dict[str, Format] = {
    one.name: one for one in (AZURE, BURSTGPT, MOONCAKE, BAILIAN, VIDUR, PLAIN_CSV)
}
"""Trace formats by name."""


def read_trace(
    path: StrPath,
    format: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
    start: int = 0,
    rows: int | None = None,
) -> Trace:
    """Read a trace of requests from a file.

    Rows without input or output tokens are dropped and counted. The remaining rows are numbered in
    the order of the file. Reading stops at the last requested row, and the rows are then sorted by
    arrival time.

    Parameters
    ----------
    path
        Path of the file.
    format
        Name of the format: "azure", "burstgpt", "mooncake", "bailian", "vidur" or "csv". None means
        that the format is determined from the first line.
    columns
        Names of the columns "arrival", "input" and "output"; used only with the format "csv".
    time_unit
        Unit of the times, "s", "ms", "us", "ns" or "date"; used only with the format "csv".
    start
        Index of the first row to return, counted from 0.
    rows
        Number of rows; None means all rows from `start` on.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is not a trace in this format, or ends before the last requested
        row. The message states the line and the column of a malformed value.
    """
    chosen = None if format is None else FORMATS[one_of("format", format, FORMATS)]
    if columns or time_unit is not None:
        if format not in (None, PLAIN_CSV.name):
            raise InvalidInput(
                f"columns and time_unit are valid only with the format {PLAIN_CSV.name}, got"
                f" {format}"
            )
        chosen = plain_csv(columns, time_unit)
    check_window(start, rows)
    with open_lines(path) as stream:
        where = os.fspath(path)
        lines = Lines(stream, where)
        number, first = lines.peek()
        if not first:
            raise InvalidInput(f"{where}: expected a trace, got an empty file")
        chosen = chosen or _recognised(first, f"{where}: line {number}")
        return collected(
            chosen.read(lines),
            start,
            rows,
            where,
            source=os.path.basename(where),
            format=chosen.name,
            guessed_unit=chosen.guessed_unit,
        )


def _recognised(first: str, where: str) -> Format:
    """Return the only format that matches the first line of a file."""
    found = [one for one in (*FORMATS.values(), UNMARKED) if one.recognises(first)]
    if len(found) == 1:
        return found[0]
    if found:
        names = " and ".join(one.name for one in found)
        raise InvalidInput(
            f"{where}: the file has the columns of {names}; choose one with --format"
        )
    known = "; ".join(f"{one.name} ({', '.join(one.columns)})" for one in FORMATS.values())
    raise InvalidInput(
        f"{where}: expected the columns of a known trace, got {describe(first.strip())}; known"
        f" traces: {known}; other CSV files need their columns named (arrival=NAME, input=NAME,"
        " output=NAME)"
    )
