"""Reading a trace file, whatever its format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

from specopt.instances.reading.lines import Lines, open_lines
from specopt.instances.traces.plain_csv import PLAIN_CSV, plain_csv
from specopt.instances.traces.recognise import FORMATS, Format, recognise
from specopt.instances.traces.rows import Rows
from specopt.instances.traces.trace import Trace
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.reading import StrPath


def read_trace(
    path: StrPath,
    format: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
    start: int = 0,
    rows: int | None = None,
) -> Trace:
    """Read a trace of requests from a file; rows without input or output tokens are dropped and
    counted.

    Rows are counted in the order of the file, dropped ones left out. Reading stops at the last row
    wanted: what comes after it is not looked at. What was read is then sorted by arrival.

    Parameters
    ----------
    path
        The file.
    format
        "azure", "burstgpt", "mooncake", "bailian", "vidur" or "csv"; None: recognised by the first
        line.
    columns, time_unit
        For "csv": names of the columns "arrival", "input", "output" and, if there is one, "name";
        unit of the times, "s", "ms", "us", "ns" or "date".
    start, rows
        First row wanted, from 0, and how many; None: all from there on.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is no trace in that format (the message names line and column),
        or ends before the last row wanted.
    """
    if format is not None and format not in FORMATS:
        raise InvalidInput(f"format: expected one of {', '.join(FORMATS)}, got {describe(format)}")
    chosen = None if format is None else FORMATS[format]
    if columns or time_unit is not None:
        if format not in (None, PLAIN_CSV.name):
            raise InvalidInput(
                f"columns, time_unit: expected the format {PLAIN_CSV.name}, got {format}"
            )
        chosen = plain_csv(columns, time_unit)
    collected = Rows(start, rows)
    with open_lines(path) as stream:
        return _read(stream, os.fspath(path), chosen, collected)


def _read(stream: TextIO, path: str, chosen: Format | None, rows: Rows) -> Trace:
    lines = Lines(stream, path)
    if chosen is None:
        chosen = recognise(lines)
    elif not lines.peek()[1]:
        raise InvalidInput(f"{path}: expected a trace, got an empty file")
    chosen.read(lines, rows)
    return rows.trace(os.path.basename(path), path, chosen.name)
