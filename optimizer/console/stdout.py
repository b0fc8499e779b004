"""Reservation of stdout for the output that a command produces as its result.

All other output, whether from Python or from compiled code, is sent to stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

_taken: TextIO | None = None
_answer: TextIO | None = None


def take_stdout() -> None:
    """Redirect file descriptor 1 to stderr, and `sys.stdout` to a duplicate of the original stdout.

    Child processes do not inherit the duplicate. If a stream was already closed when the process
    started, output to it is discarded.
    """
    global _taken
    if _taken is not None:
        return
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open until the process ends
    _taken = before = (
        sys.stdout
    )  # a reference is kept, because deleting the stream would close descriptor 1
    kept = os.dup(before.fileno())
    os.dup2(sys.stderr.fileno(), 1)
    sys.stdout = open(  # noqa: SIM115
        kept,
        "w",
        1 if before.line_buffering else -1,
        before.encoding,
        "backslashreplace",
        newline="\n",
    )


@contextmanager
def answering() -> Iterator[None]:
    """Send all output of the enclosed code to stderr, except output to the stream `stdout()`."""
    global _answer
    outer, _answer = _answer, sys.stdout
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _answer = outer


def stdout() -> TextIO:
    """Return the stream to which the current command writes its result."""
    return _answer or sys.stdout
