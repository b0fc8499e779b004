"""Budgets: long compiled calls within the time limit."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from specopt import generate
from specopt.models.errors import OutOfTime
from specopt.solvers.budget import Budget


def until_told(value: float, stop: Any) -> float:
    """Run until told to end, as a long kernel does; a guard ends it anyway."""
    end = time.monotonic() + 10.0
    while not stop[0] and time.monotonic() < end:
        time.sleep(0.001)
    return value


def budget(seconds: float | None) -> Budget:
    """Return a budget of so many seconds from now on."""
    return Budget(generate("draft-allocation/uniform", seed=1), time_limit=seconds)


def test_a_call_gives_what_the_kernel_gives() -> None:
    """Tests that a call that ends in time gives its result, with a time limit and without."""
    for seconds in (None, 5.0):
        assert budget(seconds).call(lambda a, b, stop: a + b + int(stop[0]), 1, 2) == 3


def test_a_call_is_told_to_end_and_what_it_gives_may_count() -> None:
    """Tests that the flag turns before the time is up where a part is useful, and else the time runs out."""
    assert budget(0.3).call(until_told, 7.0, partial=True) == 7.0
    started = time.monotonic()
    with pytest.raises(OutOfTime):
        budget(0.2).call(until_told, 7.0)
    assert time.monotonic() - started < 5.0


def test_an_error_in_a_call_is_raised() -> None:
    """Tests that what a kernel raises reaches the caller."""
    with pytest.raises(ZeroDivisionError):
        budget(5.0).call(lambda stop: 1 / int(stop[0]))


def test_a_sweep_that_is_told_to_end_gives_a_batch() -> None:
    """Tests that the sweep, told to end at once, still gives requests that fit together."""
    from specopt.solvers._kernels.verification_batch import sweep_until

    rng = np.random.default_rng(0)
    values, seconds, memory = rng.uniform(1.0, 2.0, 300), rng.uniform(0.01, 0.02, 300), np.zeros(300)
    deadlines, out = rng.uniform(0.5, 1.0, 300), np.empty(300, dtype=np.int64)
    count = sweep_until(values, seconds, memory, deadlines, 0.0, 0.1, 1.0, out, np.ones(1, dtype=np.uint8))
    batch = out[:count]
    assert count >= 1
    assert 0.1 + seconds[batch].sum() <= deadlines[batch].min()
