"""What a device logs of its iterations: uplink rate, confidence, and how many of its drafts were accepted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from specopt.instances.reading.csv_rows import column_names, csv_rows, decimal, place
from specopt.instances.reading.lines import Lines, open_lines
from specopt.models.draft_control import MAX_DRAFT_LENGTH, MAX_RESOLUTION, Probability, Resolution
from specopt.models.errors import InvalidInput
from specopt.models.fields import Column, Floats, Ints, NonNegativeInt, Positive, check

COLUMNS = {"uplink": "uplink_bits_per_second", "confidence": "confidence", "accepted": "accepted", "drafted": "drafted"}
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
        If the file cannot be read, its header lacks a column or has it twice, or a row is malformed; the message
        names line and column.
    """
    names = column_names(columns, COLUMNS, ("resolution",))
    where = os.fspath(path)
    found: dict[str, list[float]] = {key: [] for key in names}
    with open_lines(path) as stream:
        lines = Lines(stream, where)
        table = csv_rows(lines)
        line, header = next(table)
        places = {key: place(lines, line, header, name) for key, name in names.items()}
        for line, fields in table:
            for key, at in places.items():
                found[key].append(_value(lines, line, key, names[key], fields[at]))
            if found["accepted"][-1] > found["drafted"][-1]:
                most = f"at most the {found['drafted'][-1]:.0f} drafted tokens"
                raise lines.refuse(line, most, int(found["accepted"][-1]), names["accepted"])
    if len(found["uplink"]) < 2:
        raise InvalidInput(f"{where}: expected a header and at least 2 rows, got {len(found['uplink'])} rows")
    return ChannelTrace(
        uplink_bits_per_second=np.array(found["uplink"]),
        confidence=np.array(found["confidence"]),
        accepted=np.array(found["accepted"], dtype=np.int64),
        drafted=np.array(found["drafted"], dtype=np.int64),
        resolution=np.array(found["resolution"], dtype=np.int64) if "resolution" in found else None,
    )


def _value(lines: Lines, line: int, key: str, column: str, text: str) -> float:
    """Return the number in a field, in the range of what its column holds."""
    value = decimal(text)
    if key == "uplink":
        expected, good = "a finite number > 0", value is not None and value > 0.0
    elif key == "confidence":
        expected, good = "a number from 0 to 1", value is not None and 0.0 <= value <= 1.0
    else:
        low, high = (1, MAX_RESOLUTION) if key == "resolution" else (0, MAX_DRAFT_LENGTH)
        expected = f"a whole number from {low} to {high}"
        good = value is not None and text.strip().isdigit() and low <= value <= high
    if value is None or not good:
        raise lines.refuse(line, expected, text, column)
    return value
