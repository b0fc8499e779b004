"""Reader for the numbered lines of a UTF-8 text file.

Characters that never occur in tables are rejected.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe, printable
from specopt.models.reading import StrPath, opened, too_large

LONGEST_LINE = 1_000_000
"""Maximum length of a line, in characters; longer lines indicate a file without line breaks."""

MAX_BLANK_LINES = 100_000
"""Maximum number of blank lines before a table."""

MAX_CHARACTERS = 2**30
"""Maximum number of characters read from one file.

The number is limited because callers keep parts of the lines in memory.
"""


@contextmanager
def open_lines(path: StrPath) -> Iterator[TextIO]:
    """Open a file for reading with `Lines`.

    Bytes that are not UTF-8 become lone surrogates, so that an error message can state the line.
    """
    with opened(path) as stream:
        yield io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")


class Lines:
    """The lines of a file, including their line endings (CR, LF or CRLF).

    A byte-order mark at the start of the file is skipped.
    """

    def __init__(self, stream: TextIO, where: str) -> None:
        self.where = where
        self.number = 0  # number of the most recently returned line, from 1
        self._stream = stream
        self._ahead: list[str] = []
        self._characters = 0

    def peek(self) -> tuple[int, str]:
        """Return the number and the string of the next nonblank line, without consuming the line.

        The string is empty if there is no such line.
        """
        while line := self._stream.readline(LONGEST_LINE):
            self._ahead.append(line)
            if len(self._ahead) > MAX_BLANK_LINES:
                raise self.refuse(len(self._ahead), "a line that is not blank", line)
            if line.strip():
                self._check(line, len(self._ahead))
                return len(self._ahead), line
        return len(self._ahead), ""

    def __iter__(self) -> Iterator[str]:
        readline = self._stream.readline
        while line := self._ahead.pop(0) if self._ahead else readline(LONGEST_LINE):
            self.number += 1
            self._characters += len(line)
            if self._characters > MAX_CHARACTERS:
                raise too_large(self.where, MAX_CHARACTERS)
            if not line.isascii() or "\0" in line or len(line) >= LONGEST_LINE:
                self._check(line, self.number)
            yield line

    def refuse(
        self, line: int, expected: str, got: object, column: str | None = None
    ) -> InvalidInput:
        """Return an exception that states the position, the expected value and the actual value."""
        place = f"line {line}" if column is None else f"line {line}, {printable(column)}"
        return InvalidInput(f"{self.where}: {place}: expected {expected}, got {describe(got)}")

    def _check(self, line: str, number: int) -> None:
        if len(line) >= LONGEST_LINE:
            raise self.refuse(number, f"a line of fewer than {LONGEST_LINE:,} characters", line)
        if "\0" in line:
            raise self.refuse(number, "text", "a NUL byte")
        try:
            line.encode("utf-8")
        except UnicodeEncodeError as error:
            byte = ord(line[error.start]) - 0xDC00
            raise self.refuse(number, "text in UTF-8", f"the byte 0x{byte:02x}") from None
