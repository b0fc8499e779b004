"""The queue of events of the simulations."""

from __future__ import annotations

import heapq

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt.solvers.kernels.heap import pop, push


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=60))
def test_is_a_heap(steps: list[int | None]) -> None:
    """Tests that events leave by moment and then by number, whatever mix of pushes and pops: as
    from `heapq`.
    """
    moments, numbers, size = np.empty(60), np.empty(60, dtype=np.int64), 0
    expected: list[tuple[float, int]] = []
    for number, step in enumerate(steps):
        if step is not None:
            size = push(moments, numbers, size, float(step), number)
            heapq.heappush(expected, (float(step), number))
        elif size > 0:
            assert (moments[0], numbers[0]) == heapq.heappop(expected)
            size = pop(moments, numbers, size)
        assert size == len(expected)
