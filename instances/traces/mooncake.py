"""Reader for the traces published by Mooncake and Bailian.

Both formats have one JSON object per line, with the same fields for times and tokens. Mooncake's
times are in milliseconds. Bailian's times are in seconds, and each of Bailian's requests is a turn
of a chat. The ids of prefix blocks are not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from specopt.instances.reading.lines import Lines
from specopt.instances.traces.clock import Clock
from specopt.instances.traces.rows import Row
from specopt.instances.traces.table import TOKENS
from specopt.models.fields import MAX_TOKENS
from specopt.models.files import unique_keys

FIELDS = ("timestamp", "input_length", "output_length")


@dataclass(frozen=True)
class JsonLines:
    """A trace format with one JSON object per line.

    Parameters
    ----------
    name
        Name of the format, as used with `--format`.
    unit
        Unit of the times.
    mark
        Field that distinguishes the format from other formats. If there is no such field, this
        value is empty and the unit is a guess.
    """

    name: str
    unit: str
    mark: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the fields by which files in this format are recognised."""
        return (*FIELDS, self.mark)

    @property
    def guessed_unit(self) -> str:
        """Unit of the times if the unit is a guess; otherwise empty."""
        return "" if self.mark else self.unit

    def recognises(self, first_line: str) -> bool:
        """Return whether the first line of a file shows that the file has this format."""
        row = _object(first_line) or {}
        mark = next((mark for mark in ("chat_id", "hash_ids") if mark in row), "")
        return set(FIELDS) <= set(row) and self.mark == mark

    def read(self, lines: Lines) -> Iterator[Row]:
        """Yield the rows in a file.

        Raises
        ------
        InvalidInput
            If a line is not a JSON object, or if a field is missing or invalid. The message states
            the line and the field.
        """
        clock = Clock(self.unit)
        for line in filter(str.strip, lines):
            row = _object(line)
            if row is None:
                raise lines.refuse(lines.number, "one JSON object with unique keys", line.strip())
            for field in FIELDS:
                if field not in row:
                    raise lines.refuse(
                        lines.number, f"the fields {', '.join(FIELDS)}", ", ".join(row), field
                    )
            time = row["timestamp"]
            seconds = clock.scaled(time) if type(time) in (int, float) else None
            if seconds is None:
                raise lines.refuse(lines.number, clock.expected, _shown(time), "timestamp")
            for field in FIELDS[1:]:
                if type(row[field]) is not int or not 0 <= row[field] <= MAX_TOKENS:
                    raise lines.refuse(lines.number, TOKENS, _shown(row[field]), field)
            yield seconds, row["input_length"], row["output_length"]


MOONCAKE = JsonLines("mooncake", "ms", "hash_ids")
BAILIAN = JsonLines("bailian", "s", "chat_id")
UNMARKED = JsonLines(MOONCAKE.name, MOONCAKE.unit, "")
"""Format of files without a distinguishing field.

Such files are read as Mooncake traces, because that format is the most common.
"""


def _shown(value: object) -> object:
    """Return a form of a value that is safe to show in a message.

    Lists and objects are replaced with the names of their types, because they may be nested too
    deeply for `repr`.
    """
    return type(value).__name__ if isinstance(value, (dict, list)) else value


def _object(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
