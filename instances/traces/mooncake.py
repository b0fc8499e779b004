"""Traces of Mooncake and of Bailian: one JSON object per line, with the same fields for time and
tokens.

The times of Mooncake are in milliseconds. Those of Bailian, whose requests are turns of chats, are
in seconds. The ids of prefix blocks are not read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from specopt.instances.reading.lines import Lines
from specopt.instances.traces.clock import Clock
from specopt.instances.traces.rows import Rows
from specopt.instances.traces.table import TOKENS
from specopt.models.fields import MAX_TOKENS
from specopt.models.files import unique_keys

FIELDS = ("timestamp", "input_length", "output_length")


@dataclass(frozen=True)
class JsonLines:
    """A format of JSON lines.

    Parameters
    ----------
    name
        Name for `--format`.
    unit
        Unit of its times.
    mark
        Field that distinguishes the format from the others; empty if there is no such field, and
        the unit is a guess.
    """

    name: str
    unit: str
    mark: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Fields that a file must have to be recognised."""
        return (*FIELDS, self.mark)

    def recognises(self, first_line: str) -> bool:
        """Return whether a file with this first line has the format."""
        row = _object(first_line) or {}
        mark = next((mark for mark in ("chat_id", "hash_ids") if mark in row), "")
        return set(FIELDS) <= set(row) and self.mark == mark

    def read(self, lines: Lines, rows: Rows) -> None:
        """Read the rows of a file until no more are wanted.

        Raises
        ------
        InvalidInput
            If a line is not a JSON object, or a field is missing or invalid; the message contains
            line and field.
        """
        clock = Clock(self.unit)
        rows.guessed_unit = "" if self.mark else self.unit
        for line in filter(str.strip, lines):
            row = _object(line)
            if row is None:
                raise lines.refuse(lines.number, "one JSON object, no key twice", line.strip())
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
            if not rows.add(seconds, row["input_length"], row["output_length"]):
                return


MOONCAKE = JsonLines("mooncake", "ms", "hash_ids")
BAILIAN = JsonLines("bailian", "s", "chat_id")
UNMARKED = JsonLines(MOONCAKE.name, MOONCAKE.unit, "")
"""Files with only these fields are read as Mooncake's, which are the most common."""


def _shown(value: object) -> object:
    """Return a value for a message. Lists may be nested too deep for `repr`."""
    return type(value).__name__ if isinstance(value, (dict, list)) else value


def _object(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
