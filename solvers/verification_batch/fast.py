"""One epoch's batch by the sweep as a bare compiled call, for a server that makes it at every dispatch.

>>> import numpy as np
>>> from specopt.solvers.verification_batch import fast
>>> values, seconds = np.array([3.0, 2.0, 2.0]), np.array([0.02, 0.01, 0.01])
>>> memory, deadlines = np.zeros(3), np.array([0.05, 0.04, 0.04])
>>> out = np.empty(3, np.int64)
>>> count = fast.sweep(values, seconds, memory, deadlines, 0.0, 0.015, 0.0, out)
>>> out[:count]
array([1, 2])

The arrays belong to the caller and are prepared once: C-contiguous, float64 and int64, and not checked again. The
seconds of the requests are `VerificationTime.weights`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.solvers.room import room
from specopt.solvers.verification_batch.prepare import digits_of, seconds_room

_NEVER = np.zeros(1, np.uint8)
"""Tells the kernel to go on to its end."""


def sweep(
    values: Floats,
    seconds: Floats,
    memory: Floats,
    deadlines: Floats,
    now_seconds: float,
    overhead_seconds: float,
    memory_bytes: float,
    out: Ints,
) -> int:
    """Write a batch to `out`, its requests in the order of their indices, and return how many it has.

    Parameters
    ----------
    values, seconds, memory, deadlines
        Per request: expected tokens, the seconds w_i that it adds, its memory, and when its batch must have ended.
    now_seconds, overhead_seconds, memory_bytes
        When the batch starts, its constant overhead c, and the memory that is free. Sums that exceed a limit by the
        judge's tolerance alone fit.
    out
        Where the batch goes; as long as the others. Requests that cannot be served in time even alone stay out, and
        the batch is empty only if no request of positive value can be.

    Raises
    ------
    ValueError
        If the arrays differ in length.
    TypeError
        If they are not contiguous, or of other types.
    """
    digits = -digits_of(len(values))
    rooms = seconds_room(deadlines, now_seconds, overhead_seconds, digits)
    count: int = _kernel()(values, seconds, memory, rooms, float(room(memory_bytes, digits=digits)), out, _NEVER)
    return count


def warm_up() -> None:
    """Load the kernel, which compiles it on a fresh machine, so that the first call of `sweep` need not."""
    _kernel()


@cache
def _kernel() -> Any:
    from specopt.solvers._kernels.verification_batch_sweep import sweep as kernel

    return kernel.prepare()
