"""Parallel execution of kernels in threads. Kernels release the global interpreter lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def in_threads(workers: int, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Apply a function to all items in parallel threads, and return the results in the order of the
    items.
    """
    if min(workers, len(items)) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))
