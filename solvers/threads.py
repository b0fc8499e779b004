"""Run kernels in parallel threads. Kernels release the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def in_threads(workers: int, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Return the results of a function for some items, in the order of the items."""
    if min(workers, len(items)) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))
