"""Output to standard streams that may be closed, broken or no longer read."""

from __future__ import annotations

import logging
import os
import sys
from typing import TextIO

from specopt.models.fields import printable


def discard(stream: TextIO) -> None:
    """Redirect a broken stream to the null device, so that flushing at exit does not fail again."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return


quiet = False
"""Whether only failures are reported on stderr."""


def say(text: str) -> None:
    """Write one line to stderr, unless `quiet` is set. Control characters are escaped."""
    if not quiet:
        complain(text)


def complain(text: str) -> None:
    """Write one line to stderr, even if `quiet` is set."""
    write_error(printable(text) + "\n")


class Handler(logging.Handler):
    """A log handler that writes each record to stderr as one line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a log record to stderr as one line."""
        complain(f"{record.levelname.lower()}: {record.getMessage()}")


def set_loudness(more: int, less: bool) -> None:
    """Set the verbosity of the command.

    If `less` is set, only failures are reported. Otherwise, log records are reported as well, from
    level INFO if `more` is 1 and from level DEBUG if `more` is at least 2.
    """
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
    """Write a string to stderr. If writing fails, the string is discarded."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)
