"""Who wants to know that kernels are compiled, and what it takes; apart from `kernel.py`, which imports Numba."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

listeners: list[Callable[[str], object]] = []
"""Called with the kernel's module when it begins, and with an empty text when it ends; the front door puts one here."""


class _Meter(threading.local):
    seconds = 0.0
    is_running = False


meter = _Meter()
"""What this thread has spent on `metered` code."""


@contextmanager
def metered() -> Iterator[None]:
    """Count the seconds of the enclosed code as those of imports and compilation, once where it is nested."""
    if meter.is_running:
        yield
        return
    meter.is_running, started = True, time.perf_counter()
    try:
        yield
    finally:
        meter.is_running = False
        meter.seconds += time.perf_counter() - started


@contextmanager
def announced(module: str) -> Iterator[None]:
    """Tell all of them while a kernel of a module is compiled in the enclosed code."""
    for listener in listeners:
        listener(module)
    try:
        yield
    finally:
        for listener in listeners:
            listener("")
