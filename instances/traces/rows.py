"""Collection of the rows of a trace while its file is read."""

from __future__ import annotations

from array import array
from collections import Counter

import numpy as np

from specopt.instances.traces.trace import Trace, check_window, past_the_end
from specopt.models.errors import InvalidInput

NO_OUTPUT, NO_INPUT = "0 output tokens", "0 input tokens"
"""Reasons for dropping a row: the request failed or was empty."""


class Rows:
    """Collector of a range of the usable rows of a file.

    A row is usable if it has input and output tokens.

    Parameters
    ----------
    start
        Index of the first requested row among the usable rows, counted from 0.
    count
        Number of requested rows; None means all rows from `start` on.
    """

    def __init__(self, start: int = 0, count: int | None = None) -> None:
        check_window(start, count)
        self._start, self._count = start, count
        self._read = self._usable = 0
        self._dropped: Counter[str] = Counter()
        self._seconds, self._inputs, self._outputs = array("d"), array("q"), array("q")
        self.guessed_unit = ""  # unit of the times if the file does not specify it

    def add(self, seconds: float, input_tokens: int, output_tokens: int) -> bool:
        """Add a row, and return whether more rows are needed."""
        self._read += 1
        if not input_tokens or not output_tokens:
            self._dropped[NO_INPUT if output_tokens else NO_OUTPUT] += 1
            return True
        self._usable += 1
        if self._usable <= self._start:
            return True
        self._seconds.append(seconds)
        self._inputs.append(input_tokens)
        self._outputs.append(output_tokens)
        return self._count is None or len(self._seconds) < self._count

    def trace(self, source: str, where: str, format: str) -> Trace:
        """Return the collected rows as a trace, sorted by arrival.

        Rows with the same arrival time keep their order.

        Parameters
        ----------
        source
            Name of the file, which is stored in the trace.
        where
            Name of the file, used in messages.
        format
            Name of the format.

        Raises
        ------
        InvalidInput
            If no row is usable, or if the requested range extends beyond the last row.
        """
        reasons = ", ".join(f"{count} with {reason}" for reason, count in self._dropped.items())
        if self._read == 0:
            raise InvalidInput(f"{where}: expected at least one row, got none")
        if self._usable == 0:
            raise InvalidInput(
                f"{where}: expected a row to keep, but all {self._read} are dropped: {reasons}"
            )
        if len(self._seconds) < (self._count or 1):
            had = f" ({self._read} read; dropped: {reasons})" if reasons else ""
            raise InvalidInput(
                f"{where}: {past_the_end(self._start, self._count, self._usable)}{had}"
            )
        seconds = np.frombuffer(self._seconds, np.float64)
        backwards = int((np.diff(seconds) < 0).sum())
        order = np.argsort(seconds, kind="stable")
        return Trace(
            arrival_seconds=seconds[order] - seconds.min(),
            input_tokens=np.frombuffer(self._inputs, np.int64)[order],
            output_tokens=np.frombuffer(self._outputs, np.int64)[order],
            source=source,
            format=format,
            start=self._start,
            rows_read=self._read,
            dropped=tuple(self._dropped.items()),
            out_of_order=backwards,
            guessed_unit=self.guessed_unit,
        )
