"""Collection of the rows of a trace while the file is read."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from specopt.instances.traces.trace import Trace, past_the_end
from specopt.models.errors import InvalidInput

NO_OUTPUT, NO_INPUT = "0 output tokens", "0 input tokens"
"""Reasons for dropping a row, namely that the request failed or was empty."""

Row = tuple[float, int, int]
"""Tuple (arrival time in seconds, number of input tokens, number of output tokens)."""


def collected(
    rows: Iterable[Row], start: int, count: int | None, where: str, **labels: str
) -> Trace:
    """Return a range of the usable rows in a file as a trace, sorted by arrival time.

    A row is usable if it has input and output tokens. Rows with the same arrival time keep their
    order. No rows are read beyond the range.

    Parameters
    ----------
    rows
        Rows of the file.
    start
        Index of the first requested row among the usable rows, counted from 0.
    count
        Number of requested rows; None means all rows from `start` on.
    where
        Name of the file, used in messages.
    labels
        Other fields of the trace, passed to `Trace`.

    Raises
    ------
    InvalidInput
        If no row is usable, or if the requested range extends beyond the last row.
    """
    read = usable = 0
    dropped: Counter[str] = Counter()
    columns: list[array[Any]] = [array("d"), array("q"), array("q")]
    for row in rows:
        read += 1
        if not row[1] or not row[2]:
            dropped[NO_INPUT if row[2] else NO_OUTPUT] += 1
            continue
        usable += 1
        if usable > start:
            for column, value in zip(columns, row, strict=True):
                column.append(value)
        if count is not None and usable == start + count:
            break
    reasons = ", ".join(f"{number} with {reason}" for reason, number in dropped.items())
    if read == 0:
        raise InvalidInput(f"{where}: expected at least one row, got none")
    if usable == 0:
        raise InvalidInput(f"{where}: no row is usable; all {read} were dropped: {reasons}")
    if usable < start + (count or 1):
        had = f" ({read} read; dropped: {reasons})" if reasons else ""
        raise InvalidInput(f"{where}: {past_the_end(start, count, usable)}{had}")
    seconds, inputs, outputs = map(np.asarray, columns)
    order = np.argsort(seconds, kind="stable")
    return Trace(
        arrival_seconds=seconds[order] - seconds.min(),
        input_tokens=inputs[order],
        output_tokens=outputs[order],
        start=start,
        rows_read=read,
        dropped=tuple(dropped.items()),
        out_of_order=int((np.diff(seconds) < 0).sum()),
        **labels,
    )
