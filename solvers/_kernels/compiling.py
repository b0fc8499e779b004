"""Who wants to know that a kernel is being compiled; apart from `kernel.py`, which imports Numba."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

listeners: list[Callable[[str], object]] = []
"""Called with the kernel's module when it begins, and with an empty text when it ends; the front door puts one here."""


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
