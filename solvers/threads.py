"""Threads in which kernels run beside each other: they release Python's lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="specopt")


def in_threads(workers: int, function: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
    """Return what a function makes of each item, in their order, whichever thread comes first."""
    if workers == 1 or len(items) < 2:
        return [function(item) for item in items]
    return list(_pool(workers).map(function, items))
