"""Ctrl-C: an exception while a command works; the end, at once and without a traceback, while it loads and leaves.

The package imports this first, so that the seconds in which the command loads all else are covered.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

INTERRUPTED = 130


def end(*_: object) -> NoReturn:
    """End the process; nothing is to be saved."""
    with contextlib.suppress(OSError):
        os.write(2, b"specopt: interrupted\n")
    os._exit(INTERRUPTED)


def leave(code: int) -> NoReturn:
    """End the process at once with what it has printed, whatever its threads are doing."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(code)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise inside, as Python does by itself, and end the process from then on.

    A process that was started to ignore it, as by nohup, still does.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, end)
    except KeyboardInterrupt:
        end()


AFTER_SECONDS = 0.01


def _is_command() -> bool:
    """Tell whether this process is the command, started by its script or by `python -m specopt`."""
    words = sys.orig_argv
    module = words[words.index("-m") + 1 :][:1] if sys.argv[:1] == ["-m"] and "-m" in words else []
    return module == ["specopt"] or [os.path.basename(word) for word in sys.argv[:1]] == ["specopt"]


def _unraisable(found: sys.UnraisableHookArgs) -> None:
    """Raise a Ctrl-C once more that fell into a callback, where Python can only print it: Numba has some.

    What a Ctrl-C left half-made may fail to end itself: that of LLVM lacks the attributes it had not got yet.
    """
    if issubclass(found.exc_type, KeyboardInterrupt):
        later = threading.Timer(AFTER_SECONDS, _thread.interrupt_main)  # at once, it would be raised in here
        later.daemon = True
        later.start()
        return
    ends = getattr(found.object, "__name__", "") == "__del__"
    compiler = str(getattr(found.object, "__module__", "")).startswith(("llvmlite", "numba"))
    if not (ends and (compiler or isinstance(found.exc_value, AttributeError))):
        sys.__unraisablehook__(found)


if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, end)
    sys.unraisablehook = _unraisable
