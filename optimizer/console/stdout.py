"""Stdout belongs to the answer: whatever else is printed, by Python or by compiled code, goes to
stderr.
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
    """Lead descriptor 1 to stderr, and `sys.stdout` to a duplicate of what it was, which no other
    process inherits.

    What is written to a stream that was closed before the start goes nowhere.
    """
    global _taken
    if _taken is not None:
        return
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - as long as the process lives
    _taken = before = sys.stdout  # kept: it would close descriptor 1 with it
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
    """Send what the enclosed command prints to stderr, but for what it writes to `stdout()`."""
    global _answer
    outer, _answer = _answer, sys.stdout
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _answer = outer


def stdout() -> TextIO:
    """Return the stream for the answer of the command that runs."""
    return _answer or sys.stdout
