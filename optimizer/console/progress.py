"""Progress reports on stderr.

A terminal shows a single line that is updated. Other streams receive a new line every few seconds.
"""

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

FIRST_SECONDS = 0.5
"""Time in seconds before progress is first printed. Work that ends earlier prints no progress."""

TERMINAL_INTERVAL_SECONDS = 0.1
"""Minimum time between two updates of the progress line on a terminal, in seconds."""

PLAIN_INTERVAL_SECONDS = 2.0
"""Minimum time between two progress lines if stderr is not a terminal, in seconds."""

MAX_RATIO = 2.0
"""Maximum ratio between objective and bound at which the bound is shown as progress.

The ratio is the larger of the two values divided by the smaller.
"""

_ERASE = "\r\x1b[2K"
_lock = threading.Lock()
_last = -1e9
_live = False
_shown: set[str] = set()  # kernel modules that were already reported


def print_progress(progress: Progress) -> None:
    """Print the progress of a solve.

    Nothing is printed if the solve has just begun, if progress has just been printed, or if only
    failures are reported.
    """
    print_step(progress.seconds, progress_line(progress))


def print_step(seconds: float, text: str, plain_seconds: float = PLAIN_INTERVAL_SECONDS) -> None:
    """Print a line about the progress of some work.

    Nothing is printed if the work has just begun, if progress has just been printed, or if only
    failures are reported.

    Parameters
    ----------
    seconds
        Time since the work began, in seconds.
    text
        Line to print.
    plain_seconds
        Minimum time between two progress lines if stderr is not a terminal, in seconds.
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
    """Erase the progress line if one is shown, so that other output starts on an empty line."""
    global _last, _live
    with _lock:
        _last = -1e9
        if _live:
            write_error(_ERASE)
        _live = False


def progress_line(progress: Progress) -> str:
    """Return a progress line with the elapsed time and with the objective, bound and gap if known.

    Examples
    --------
    >>> progress_line(Progress(1.5, 160.25, None, None))
    '    1.5 s  objective 160.25'
    >>> progress_line(Progress(1.5, 160.25, 152.2375, 0.05))
    '    1.5 s  objective 160.25  bound 152.238  gap 5 %'
    >>> progress_line(Progress(1.5, 160.25, 6.41, 0.96))
    '    1.5 s  objective 160.25  bound not known yet'
    """
    parts = [f"{progress.seconds:7.1f} s"]
    if progress.objective is not None:
        parts.append(f"objective {progress.objective:.6g}")
    if _is_far(progress):
        return "  ".join([*parts, "bound not known yet"])
    if progress.bound is not None:
        parts.append(f"bound {progress.bound:.6g}")
    if progress.gap is not None:
        parts.append(f"gap {100.0 * progress.gap:.3g} %")
    return "  ".join(parts)


def _is_far(progress: Progress) -> bool:
    """Return whether the bound is too far from the objective to be informative."""
    if progress.gap is None or progress.objective is None or progress.bound is None:
        return False
    above = progress.bound > progress.objective
    return progress.gap > (MAX_RATIO - 1.0 if above else 1.0 - 1.0 / MAX_RATIO)


@contextmanager
def showing_kernels() -> Iterator[None]:
    """Report on stderr which kernels are compiled by the enclosed code.

    Nested uses of this context manager have no effect.
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
    """Report on stderr that the kernels of a module are being compiled.

    On a terminal, the report disappears when compilation ends. Otherwise, it is printed only once.
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
