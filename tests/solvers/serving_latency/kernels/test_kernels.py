"""The closed forms of the kernels against the sums that they stand for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt.kinds.serving_latency.strategies import problems
from specopt.solvers.serving_latency.kernels import annealing, plans, rebatching
from specopt.solvers.serving_latency.kernels import stages as kernels
from specopt.solvers.serving_latency.prepare import prepare
from specopt.solvers.serving_latency.stages import stages


@settings(max_examples=50)
@given(problems(mechanisms=["pipelined"], max_output=60, max_length=5), st.integers(1, 5))
def test_sums_of_stage_times(problem: Any, size: int) -> None:
    """Tests that the sums of T^d and T^v over the decoding steps are those of their terms."""
    prepared = prepare(problem)
    last = prepared.tasks - 1
    for length in prepared.lengths:
        at = stages(prepared, length, conservative=True)
        steps = int(at.steps[last])
        single = [
            kernels.range_stages(at.data, float(size), last, n, 1) for n in range(1, steps + 1)
        ]
        sums = kernels.all_stages(at.data, float(size), last, steps)
        assert sums == pytest.approx(
            [math.fsum(times) for times in zip(*single, strict=True)], rel=1e-11
        )


@settings(max_examples=50)
@given(
    problems(
        mechanisms=["pipelined"],
        output_lengths=["conservative"],
        tasks=(2, 7),
        max_output=20,
        max_length=2,
    )
)
def test_local_search_rates_blocks_as_others_do(problem: Any) -> None:
    """Tests that the latency that a search over blocks ends with is that of its blocks, for any
    runtimes.
    """
    prepared = prepare(problem)
    tasks, stream = prepared.tasks, np.array([1], np.uint64)
    for length in prepared.lengths:
        data, found = stages(prepared, length).data, np.empty(1)
        blocks = np.stack([np.arange(1, tasks + 1), np.ones(tasks, np.int64)])
        count, seconds = np.array([tasks]), np.array([math.inf])
        for out in (seconds, found):  # of every task alone, and at the end
            ends, sizes = (np.ascontiguousarray(rows[None, : count[0]]) for rows in blocks)
            plans.sequences_seconds(1, count[0], data, ends, sizes, out)
            if out is seconds:
                annealing.improve_sequence(100, data, blocks, count, seconds, stream)
        assert seconds == pytest.approx(found, rel=1e-12)


def test_tasks_of_a_step() -> None:
    """Tests that the tasks of a step are those that last so long, and their output lengths come in
    rising order.
    """
    task = np.zeros((4, 1 + max(kernels.STEPS, kernels.OUTPUT)))
    task[:, kernels.STEPS], task[:, kernels.OUTPUT] = (9, 2, 5, 7), (90, 20, 50, 70)
    data = kernels.Data(task, np.zeros(10), np.zeros((2, 1, 3)))
    active, least = np.full(5, -1, np.int64), np.full(5, -1.0)
    assert rebatching.active_tasks(data, np.array([1, 2, 3, 0]), 5, active, least) == 3
    assert (active[:3].tolist(), least[:3].tolist()) == ([0, 2, 3], [50.0, 70.0, 90.0])
