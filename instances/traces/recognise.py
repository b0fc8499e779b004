"""The formats of traces, and which of them a file is in, by its first line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from specopt.instances.reading.lines import Lines
from specopt.instances.traces.mooncake import BAILIAN, MOONCAKE, UNMARKED
from specopt.instances.traces.plain_csv import PLAIN_CSV
from specopt.instances.traces.public import AZURE, BURSTGPT, VIDUR
from specopt.instances.traces.rows import Rows
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe


class Format(Protocol):
    """How one kind of trace file is read."""

    @property
    def name(self) -> str:
        """What `--format` calls it."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns or fields that it reads."""

    def recognises(self, first_line: str) -> bool:
        """Return whether a file with this first line is in the format."""

    def read(self, lines: Lines, rows: Rows) -> None:
        """Read the rows of a file until no more are wanted."""


FORMATS = {one.name: one for one in (AZURE, BURSTGPT, MOONCAKE, BAILIAN, VIDUR, PLAIN_CSV)}


def recognise(lines: Lines) -> Format:
    """Return the one format that a file's first line that is not blank is in; no line is used up.

    Raises
    ------
    InvalidInput
        If the file is empty, or the line fits no format or several.
    """
    number, first = lines.peek()
    if not first:
        raise InvalidInput(f"{lines.where}: expected a trace, got an empty file")
    found = [one for one in (*FORMATS.values(), UNMARKED) if one.recognises(first)]
    if len(found) == 1:
        return found[0]
    if found:
        names = " and ".join(one.name for one in found)
        raise InvalidInput(
            f"{lines.where}: line {number}: the columns of {names} are all there; name the format"
        )
    known = "; ".join(f"{one.name} ({', '.join(one.columns)})" for one in FORMATS.values())
    raise InvalidInput(
        f"{lines.where}: line {number}: expected the columns of a known trace, got"
        f" {describe(first.strip())}; known are {known}; other CSV files need their columns named"
        " (arrival=NAME, input=NAME, output=NAME)"
    )
