"""Handlers for Ctrl-C, SIGTERM and SIGHUP.

While a command is working, these signals raise an exception. While a command is starting or
exiting, they end the process without a traceback. The package imports this module first, so that
the handlers are active while the other modules are imported.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from specopt.console.stdout import take_stdout

INTERRUPTED = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_first: int | None = None
"""Signal that interrupted the command; None if there was none."""


def end(number: int | None = None, _: FrameType | None = None) -> NoReturn:
    """End the process immediately, because there is nothing to save."""
    with contextlib.suppress(OSError):
        os.write(2, b"specopt: interrupted\n")
    os._exit(128 + (_first or number or signal.SIGINT))


def leave() -> NoReturn:
    """Flush stdout and end an interrupted process immediately, without waiting for its threads."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(128 + (_first or signal.SIGINT))


def _interrupt(number: int, _: FrameType | None) -> NoReturn:
    global _first
    _first = _first or number
    raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Make the signals raise KeyboardInterrupt in the enclosed code, and exit afterwards.

    A signal that the process ignored from the start, for example because of nohup, remains ignored.
    """
    try:
        _handle(_interrupt)
        yield
        _handle(end)
    except KeyboardInterrupt:
        end()


def _handle(by: Callable[[int, FrameType | None], NoReturn]) -> None:
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, by)


AFTER_SECONDS = 0.01
"""Delay before a Ctrl-C that was lost in a callback is raised again, in seconds."""


def _is_command() -> bool:
    """Return whether this process runs the command, `specopt` or `python -m specopt`."""
    words = sys.orig_argv
    module = words[words.index("-m") + 1 :][:1] if sys.argv[:1] == ["-m"] and "-m" in words else []
    return module == ["specopt"] or [os.path.basename(word) for word in sys.argv[:1]] == ["specopt"]


def _unraisable(found: sys.UnraisableHookArgs) -> None:
    """Re-raise a Ctrl-C that arrived in a Numba callback, where Python can only print it.

    If Ctrl-C interrupts the construction of an LLVM object, the object lacks attributes and its
    `__del__` fails. Such failures are not printed.
    """
    if issubclass(found.exc_type, KeyboardInterrupt):
        again = _first or signal.SIGINT
        later = threading.Timer(
            AFTER_SECONDS, _thread.interrupt_main, [again]
        )  # without a delay, the signal would be raised inside this function
        later.daemon = True
        later.start()
        return
    ends = getattr(found.object, "__name__", "") == "__del__"
    compiler = str(getattr(found.object, "__module__", "")).startswith(("llvmlite", "numba"))
    if not (ends and (compiler or isinstance(found.exc_value, AttributeError))):
        sys.__unraisablehook__(found)


if _is_command():
    _handle(end)
    sys.unraisablehook = _unraisable
    take_stdout()
