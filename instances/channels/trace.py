"""What a device logs of its iterations: uplink rate, confidence, and how many of its drafts were accepted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from specopt.instances.reading.csv_table import column_names, count_in, csv_rows, number_in
from specopt.instances.reading.lines import open_lines
from specopt.models.draft_control import MAX_DRAFT_LENGTH, MAX_RESOLUTION, Probability, Resolution
from specopt.models.errors import InvalidInput
from specopt.models.fields import Column, Floats, Ints, NonNegativeInt, Positive, check

COLUMNS = {
    "uplink": "uplink_bits_per_second",
    "confidence": "confidence",
    "accepted": "accepted",
    "drafted": "drafted",
}
"""The columns of a file unless others are named; "resolution" may be named, too."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelTrace:
    """Iterations of one device, in order.

    Parameters
    ----------
    uplink_bits_per_second
        C_u of each iteration, shape (n,).
    confidence
        The draft model's confidence in [0, 1], as known at the start of the iteration.
    accepted, drafted
        Tokens accepted before the first rejection, and drafted; an iteration without drafts tells nothing of
        acceptance, but counts for the channel.
    resolution
        Lattice resolution of each iteration; None: all had the same, whichever it was.
    """

    uplink_bits_per_second: Annotated[Floats, Column(Positive, "iteration")]
    confidence: Annotated[Floats, Column(Probability, "iteration")]
    accepted: Annotated[Ints, Column(NonNegativeInt, "iteration")]
    drafted: Annotated[Ints, Column(NonNegativeInt, "iteration")]
    resolution: Annotated[Ints, Column(Resolution, "iteration")] | None = None

    def __post_init__(self) -> None:
        check(self)
        if len(self) < 2:
            raise InvalidInput(f"uplink_bits_per_second: expected at least 2 iterations, got {len(self)}")
        wrong = self.accepted > self.drafted
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidInput(
                f"accepted[{row}]: expected at most the {self.drafted[row]} drafted tokens, got {self.accepted[row]}"
            )

    def __len__(self) -> int:
        return len(self.uplink_bits_per_second)


def read_channel_trace(path: str | os.PathLike[str], columns: Mapping[str, str] | None = None) -> ChannelTrace:
    """Read a CSV file with a header, one row per iteration, in order; columns that are not asked for do not matter.

    Parameters
    ----------
    path
        The file.
    columns
        Names of the columns "uplink", "confidence", "accepted" and "drafted", and of "resolution" if there is one;
        those not given are called as in `COLUMNS`.

    Raises
    ------
    InvalidInput
        If the file cannot be read, lacks a column or has it twice, or a row is malformed; the message names line and
        column.
    """
    names = column_names(columns, COLUMNS, "resolution")
    found: dict[str, list[float]] = {key: [] for key in names}
    with open_lines(path) as lines:
        for line, cells in csv_rows(lines, tuple(names.values())):
            for key, cell in zip(names, cells, strict=True):
                value = _value(key, cell)
                if value is None:
                    raise lines.refuse(line, _EXPECTED[key], cell, names[key])
                found[key].append(value)
            if found["accepted"][-1] > found["drafted"][-1]:
                most = f"at most the {found['drafted'][-1]} drafted tokens"
                raise lines.refuse(line, most, found["accepted"][-1], names["accepted"])
    if len(found["uplink"]) < 2:
        raise InvalidInput(f"{path}: expected a header and at least 2 rows, got {len(found['uplink'])} rows")
    return ChannelTrace(**{COLUMNS.get(key, key): np.array(values) for key, values in found.items()})


_EXPECTED = {
    "uplink": "a finite number > 0",
    "confidence": "a number from 0 to 1",
    "accepted": f"a whole number from 0 to {MAX_DRAFT_LENGTH}",
    "drafted": f"a whole number from 0 to {MAX_DRAFT_LENGTH}",
    "resolution": f"a whole number from 1 to {MAX_RESOLUTION}",
}


def _value(key: str, cell: str) -> float | None:
    """Return the value in a cell, None if it holds none of its kind."""
    if key in ("uplink", "confidence"):
        number = number_in(cell)
        good = number is not None and (number > 0.0 if key == "uplink" else 0.0 <= number <= 1.0)
        return number if good else None
    if key == "resolution":
        return count_in(cell, MAX_RESOLUTION) or None
    return count_in(cell, MAX_DRAFT_LENGTH)
