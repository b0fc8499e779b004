"""How many times as long one call takes as another: what a test may say of time on any machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def growth(small: Callable[[], Any], large: Callable[[], Any], tries: int = 7) -> float:
    """Return the least time of the processor of `large` over that of `small`."""
    return min(_seconds(large) for _ in range(tries)) / max(
        min(_seconds(small) for _ in range(tries)), 1e-6
    )


def _seconds(call: Callable[[], Any]) -> float:
    started = time.thread_time()
    call()
    return time.thread_time() - started
