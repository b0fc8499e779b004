"""Silence HiGHS, both in our own objects and in those that Pyomo and CVXPY create.

HiGHS 1.16.0 prints a banner once per process while its Python object is created, which is too early
for an option.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import highspy

if hasattr(
    os, "register_at_fork"
):  # a child waits forever for the threads that its parent solved with
    os.register_at_fork(after_in_child=lambda: highspy.Highs.resetGlobalScheduler(False))


class Highs(highspy.Highs):
    """HiGHS without output."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # highspy's constructor has no annotations
        self.setOptionValue(
            "output_flag", False
        )  # for HiGHS 1.7, whose constructor enables no callbacks

    def enableCallbacks(self) -> None:
        """Turn the output off before the constructor makes the call that prints the banner."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()  # type: ignore[no-untyped-call]


_lock = threading.Lock()
_inside = 0
_found = highspy.Highs


@contextmanager
def silent_highs() -> Iterator[None]:
    """Replace `highspy.Highs`, which Pyomo and CVXPY use, by our class in the enclosed code.

    Several threads may use it at once. Objects that other code creates meanwhile are silent too,
    until it sets `output_flag`.
    """
    global _inside, _found
    with _lock:
        _found = _found if _inside else highspy.Highs
        _inside += 1
        highspy.Highs = Highs  # type: ignore[misc]
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                highspy.Highs = _found  # type: ignore[misc]
