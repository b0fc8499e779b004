"""Progress on stderr: a live line on a terminal, plain lines elsewhere, and never many of them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from specopt.console import streams
from specopt.console.streams import write_error
from specopt.models.fields import printable
from specopt.models.result import Progress
from specopt.solvers.kernels.cache import NO_CACHE, folder
from specopt.solvers.kernels.compiling import listeners

FIRST_SECONDS = 0.5  # short solves stay silent
TERMINAL_INTERVAL_SECONDS = 0.1
PLAIN_INTERVAL_SECONDS = 2.0

_ERASE = "\r\x1b[2K"
_lock = threading.Lock()
_last = -1e9
_live = False
_shown: set[str] = set()  # modules of kernels


def print_progress(progress: Progress) -> None:
    """Print where a solve stands, unless it has just begun or a line was printed a moment ago."""
    print_step(progress.seconds, progress_line(progress))


def print_step(seconds: float, text: str, plain_seconds: float = PLAIN_INTERVAL_SECONDS) -> None:
    """Print where work stands that has taken so long, unless it has just begun or a line was
    printed a moment ago.

    Parameters
    ----------
    seconds
        Seconds since the work began.
    text
        What to print.
    plain_seconds
        Seconds between two lines where stderr is not a terminal.
    """
    global _last, _live
    terminal = sys.stderr.isatty()
    interval = TERMINAL_INTERVAL_SECONDS if terminal else plain_seconds
    with _lock:
        now = time.monotonic()
        if streams.quiet or seconds < FIRST_SECONDS or now - _last < interval:
            return
        _last = now
        _live = terminal
        text = printable(text)
        write_error(_ERASE + text if terminal else text + "\n")


def end_progress() -> None:
    """Erase the live line, if there is one, so that what follows starts on a clean line."""
    global _last, _live
    with _lock:
        _last = -1e9
        if _live:
            write_error(_ERASE)
        _live = False


def progress_line(progress: Progress) -> str:
    """Return one line: seconds, objective, bound and gap, as far as they are known.

    Examples
    --------
    >>> progress_line(Progress(1.5, 160.25, None, None))
    '    1.5 s  objective 160.25'
    """
    parts = [f"{progress.seconds:7.1f} s"]
    if progress.objective is not None:
        parts.append(f"objective {progress.objective:.6g}")
    if progress.bound is not None:
        parts.append(f"bound {progress.bound:.6g}")
    if progress.gap is not None:
        parts.append(f"gap {100.0 * progress.gap:.3g} %")
    return "  ".join(parts)


@contextmanager
def showing_kernels() -> Iterator[None]:
    """Say on stderr, in the enclosed work, which kernels are being compiled; nested, it is said
    once.
    """
    if _show_kernels in listeners:
        yield
        return
    listeners.append(_show_kernels)
    try:
        yield
    finally:
        listeners.remove(_show_kernels)


def _show_kernels(module: str) -> None:
    """Say that kernels of a module are being compiled, on a terminal until that is done, elsewhere
    once.
    """
    global _live
    with _lock:
        terminal = sys.stderr.isatty()
        often = "once on this machine" if folder() else NO_CACHE
        text = f"preparing {module.partition('.')[0].replace('_', '-')} kernels, {often} ..."
        if terminal:
            write_error(_ERASE + text if module else _ERASE)
            _live = bool(module)
        elif module and module not in _shown:
            _shown.add(module)
            write_error(text + "\n")
