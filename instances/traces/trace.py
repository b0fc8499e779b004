"""Class for traces of requests, with arrival times and the lengths of prompts and responses."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import Column, Floats, Ints, NonNegative, TokenCount, check

Count = Annotated[int, Meta(ge=0)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """A sequence of requests in order of arrival.

    The trace also records information about the file from which the requests were read.

    Parameters
    ----------
    arrival_seconds
        Arrival time of each request, in seconds since the first arrival; nondecreasing.
    input_tokens
        Number of tokens in each prompt.
    output_tokens
        Number of tokens in each response.
    source
        Name of the file.
    format
        Format of the file.
    start
        Number of usable rows in the file before the first request.
    rows_read
        Number of rows that were read, including dropped rows but not the header or blank lines.
    dropped
        Reasons for dropping rows, each with the number of rows dropped for that reason.
    out_of_order
        Number of rows whose arrival time is earlier than that of the preceding row in the file.
    guessed_unit
        Unit of the times if the unit is a guess; otherwise empty.

    Raises
    ------
    InvalidInput
        If a value is outside its domain, if arrivals decrease, or if columns differ in length.
    """

    arrival_seconds: Annotated[Floats, Column(NonNegative)]
    input_tokens: Annotated[Ints, Column(TokenCount)]
    output_tokens: Annotated[Ints, Column(TokenCount)]
    source: str | None = None
    format: str | None = None
    start: Count = 0
    rows_read: Count = 0
    dropped: tuple[tuple[str, Count], ...] = ()
    out_of_order: Count = 0
    guessed_unit: str = ""

    def __post_init__(self) -> None:
        check(self)
        if (np.diff(self.arrival_seconds) < 0).any():
            raise InvalidInput("arrival_seconds: expected times that never decrease")

    def __len__(self) -> int:
        return len(self.arrival_seconds)

    @property
    def duration_seconds(self) -> float:
        """Time from the first to the last arrival, in seconds."""
        return float(self.arrival_seconds[-1])

    @property
    def requests_per_second(self) -> float:
        """Mean arrival rate, computed as the number of gaps divided by their total duration.

        Raises
        ------
        InvalidInput
            If all requests arrive at the same time.
        """
        if not self.duration_seconds:
            raise InvalidInput(
                "arrival_seconds: expected at least two distinct arrival times, to estimate a rate"
            )
        return (len(self) - 1) / self.duration_seconds

    @property
    def guess(self) -> str:
        """Note stating that the unit of the times is a guess; empty if the unit is known."""
        if not self.guessed_unit:
            return ""
        return (
            f"{self.source}: the time unit is unknown; read in {self.guessed_unit}, the"
            f" {len(self)} requests arrive within {self.duration_seconds:g} s; if"
            " the unit is wrong, use `specopt import` with --format or --time-unit"
        )

    @property
    def dropped_rows(self) -> int:
        """Number of dropped rows."""
        return sum(count for _, count in self.dropped)

    def window(self, start: int = 0, rows: int | None = None) -> Trace:
        """Return consecutive requests of this trace. Times are relative to the first of these
        requests.

        Parameters
        ----------
        start
            Index of the first request, counted from 0.
        rows
            Number of requests; None means all requests from `start` on.

        Raises
        ------
        InvalidInput
            If the range is empty or extends beyond the last request.
        """
        check_window(start, rows)
        stop = len(self) if rows is None else start + rows
        if stop > len(self) or start >= len(self):
            raise InvalidInput(past_the_end(start, rows, len(self)))
        part = slice(start, stop)
        return dataclasses.replace(
            self,
            arrival_seconds=self.arrival_seconds[part] - self.arrival_seconds[start],
            input_tokens=self.input_tokens[part],
            output_tokens=self.output_tokens[part],
            start=self.start + start,
        )

    def between(self, from_seconds: float, to_seconds: float) -> Trace:
        """Return the requests that arrive at `from_seconds` or later and before `to_seconds`.

        Raises
        ------
        InvalidInput
            If no request arrives in this period.
        """
        first, stop = np.searchsorted(
            self.arrival_seconds, [from_seconds, to_seconds], side="left"
        ).tolist()
        if not stop > first:
            raise InvalidInput(
                "from_seconds, to_seconds: expected a time in which requests arrive (the trace"
                f" lasts {self.duration_seconds:g} s), got {from_seconds:g} to {to_seconds:g}"
            )
        return self.window(first, stop - first)


def check_window(start: object, rows: object) -> None:
    """Check the first index and the number of rows of a range.

    The index must be an integer >= 0, and the number must be None or an integer >= 1.
    """
    integer("start", start, 0)
    if rows is not None:
        integer("rows", rows, 1)


def past_the_end(start: int, rows: int | None, usable: int) -> str:
    """Return the message for a range that extends beyond a trace with `usable` rows."""
    wanted = f"rows from {start} on" if rows is None else f"rows {start} to {start + rows - 1}"
    return (
        f"expected a window within the {usable} usable rows of the trace (0 to {usable - 1}), got"
        f" {wanted}"
    )
