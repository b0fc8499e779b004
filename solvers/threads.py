"""Parallel execution of kernels, which release the global interpreter lock, in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def in_threads(workers: int, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Apply a function to all items in parallel, and return the results in order."""
    if min(workers, len(items)) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))
