"""Standard streams as a command finds them: closed, broken, or with nobody who reads."""

from __future__ import annotations

import logging
import os
import sys
from typing import TextIO

from specopt.models.fields import printable


def discard(stream: TextIO) -> None:
    """Point a stream at nothing: what is still buffered cannot be written, and must not fail again
    at exit.
    """
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return


quiet = False
"""Whether nothing but failures is said."""


def say(text: str) -> None:
    """Write one line to stderr, unless nothing is to be said; names in it may hold anything."""
    if not quiet:
        complain(text)


def complain(text: str) -> None:
    """Write one line to stderr, whatever was asked for."""
    write_error(printable(text) + "\n")


class Handler(logging.Handler):
    """Writes records of the log to stderr, a line each."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        complain(f"{record.levelname.lower()}: {record.getMessage()}")


def set_loudness(more: int, less: bool) -> None:
    """Set verbosity: failures only, or also the log's records of level info (1) or debug (2)."""
    global quiet
    quiet = less
    logger = logging.getLogger("specopt")
    logger.handlers = [handler for handler in logger.handlers if not isinstance(handler, Handler)]
    logger.setLevel(
        logging.ERROR if less else (logging.NOTSET, logging.INFO, logging.DEBUG)[min(more, 2)]
    )
    if more:
        logger.addHandler(Handler())


def write_error(text: str) -> None:
    """Write to stderr, where somebody reads it."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)
