"""Standard streams as a command finds them: closed, broken, or with nobody who reads."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from specopt.models.fields import printable


def open_closed() -> None:
    """Let what is written to a stream that was closed before the start go nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - as long as the process lives


def discard(stream: TextIO) -> None:
    """Point a stream at nothing: what is still buffered cannot be written, and must not fail again at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return


def say(text: str) -> None:
    """Write one line to stderr; names in it may hold anything."""
    write_error(printable(text) + "\n")


def write_error(text: str) -> None:
    """Write to stderr, where somebody reads it."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)
