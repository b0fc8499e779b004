"""Suppression of the console output of HiGHS, which also applies to HiGHS objects that Pyomo
creates.

HiGHS 1.16.0 prints a banner once per process while its Python object is constructed, before any
option can be set.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import highspy

# Otherwise, a child process would wait forever for the threads of its parent.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: highspy.Highs.resetGlobalScheduler(False))


class Highs(highspy.Highs):
    """A HiGHS object that prints nothing."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # highspy's constructor has no annotations
        # Required for HiGHS 1.7, whose constructor does not call enableCallbacks.
        self.setOptionValue("output_flag", False)

    def enableCallbacks(self) -> None:
        """Turn off the output, and then enable callbacks. The constructor calls this method just
        before HiGHS would print its banner.
        """
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()  # type: ignore[no-untyped-call]


_lock = threading.Lock()
_inside = 0
_found = highspy.Highs


@contextmanager
def silent_highs() -> Iterator[None]:
    """Replace the class `highspy.Highs`, which Pyomo uses, by a silent class inside the `with`
    block.

    Several threads may use this context manager concurrently. HiGHS objects that other code creates
    in the meantime are also silent, unless that code sets `output_flag`.
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
