"""Ctrl-C, SIGTERM, SIGHUP: an exception while a command works; the end, without a traceback, while
it loads and leaves.

The package imports this first, so that the seconds in which the command loads all else are covered.
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
"""The signal that interrupted the command."""


def end(number: int | None = None, _: FrameType | None = None) -> NoReturn:
    """End the process; nothing is to be saved."""
    with contextlib.suppress(OSError):
        os.write(2, b"specopt: interrupted\n")
    os._exit(128 + (_first or number or signal.SIGINT))


def leave() -> NoReturn:
    """End an interrupted process at once with what it has printed, whatever its threads are
    doing.
    """
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(128 + (_first or signal.SIGINT))


def _interrupt(number: int, _: FrameType | None) -> NoReturn:
    global _first
    _first = _first or number
    raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Let the signals raise KeyboardInterrupt inside, and end the process from then on.

    A signal that the process was started to ignore, as by nohup, is still ignored.
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


def _is_command() -> bool:
    """Return whether this process is the command, started by its script or by `python -m
    specopt`.
    """
    words = sys.orig_argv
    module = words[words.index("-m") + 1 :][:1] if sys.argv[:1] == ["-m"] and "-m" in words else []
    return module == ["specopt"] or [os.path.basename(word) for word in sys.argv[:1]] == ["specopt"]


def _unraisable(found: sys.UnraisableHookArgs) -> None:
    """Raise a Ctrl-C once more that fell into a callback, where Python can only print it: Numba has
    some.

    What a Ctrl-C left half-made may fail to end itself: that of LLVM lacks the attributes it had
    not got yet.
    """
    if issubclass(found.exc_type, KeyboardInterrupt):
        again = _first or signal.SIGINT
        later = threading.Timer(
            AFTER_SECONDS, _thread.interrupt_main, [again]
        )  # at once, it would be raised in here
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
