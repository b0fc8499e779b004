"""Handlers for Ctrl-C, SIGTERM and SIGHUP.

While a command is working, these signals raise an exception. While the process is starting or
exiting, they end it without a traceback. The package imports this module before all others, so that
the handlers are already active during those imports.
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
"""Number of the signal that interrupted the command; None if there was no such signal."""


def end(number: int | None = None, _: FrameType | None = None) -> NoReturn:
    """End the process immediately without a traceback, because there is nothing to save.

    This function is a signal handler. It is used before and after a command works.
    """
    with contextlib.suppress(OSError):
        os.write(2, b"specopt: interrupted\n")
    os._exit(128 + (_first or number or signal.SIGINT))


def leave() -> NoReturn:
    """Flush stdout, and end an interrupted process immediately without waiting for its threads."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(128 + (_first or signal.SIGINT))


def _interrupt(number: int, _: FrameType | None) -> NoReturn:
    global _first
    _first = _first or number
    raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt in the enclosed code.

    Afterwards, these signals end the process again. A signal that was ignored when the process
    started, for example because of nohup, remains ignored.
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
"""Delay in seconds before a KeyboardInterrupt that was lost in a callback is raised again."""


def _is_command() -> bool:
    """Return whether this process was started as `specopt` or as `python -m specopt`."""
    words = sys.orig_argv
    module = words[words.index("-m") + 1 :][:1] if sys.argv[:1] == ["-m"] and "-m" in words else []
    return module == ["specopt"] or [os.path.basename(word) for word in sys.argv[:1]] == ["specopt"]


def _unraisable(found: sys.UnraisableHookArgs) -> None:
    """Handle exceptions that Python cannot propagate.

    A KeyboardInterrupt in a Numba callback is raised again after a short delay. If Ctrl-C
    interrupts the construction of an LLVM object, the object is incomplete and its `__del__` fails.
    Such failures are not printed.
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
