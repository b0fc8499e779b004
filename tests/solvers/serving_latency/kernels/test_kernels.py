"""The closed forms of the kernels against the sums that they stand for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt.kinds.serving_latency.strategies import problems
from specopt.solvers.serving_latency.blocks import widths
from specopt.solvers.serving_latency.kernels import annealing, plans
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
def test_local_search_rates_plans_as_others_do(problem: Any) -> None:
    """Tests that the latency that a search over batches ends with is that of its best plan, for any
    runtimes, and that blocks in pipeline order are rated as batches are.
    """
    prepared = prepare(problem)
    tasks, stream = prepared.tasks, np.array([1], np.uint64)
    every = np.arange(tasks)
    for length in prepared.lengths:
        data, alone = stages(prepared, length).data, np.empty(1)
        ends, sizes = every[None, :] + 1, np.ones((1, tasks), np.int64)
        plans.sequences_seconds(1, tasks, data, ends, sizes, alone)
        assert alone[0] == pytest.approx(plans.plan_seconds(tasks, data, every), rel=1e-12)
        plan, counts = np.stack([every] * 4), np.array([tasks, tasks])
        seconds = np.repeat(alone, 2)
        annealing.improve_batches(0, 100, 100, data, every, 1e-3, plan, counts, seconds, stream)
        assert seconds[1] <= alone[0]
        for part in range(2):  # the current plan, and the best plan
            slot, order = plan[2 * part :][:2]
            place = np.argsort(order)[slot]
            found = plans.plan_seconds(int(counts[part]), data, place)
            assert seconds[part] == pytest.approx(found, rel=1e-12)
        blocks, width = np.stack([every + 1, every]), widths(prepared)
        best = annealing.improve_blocks(100, data, width, 1e-3, blocks, stream)
        assert best <= alone[0]
        ends, order = blocks
        sizes = np.diff(ends, prepend=0)
        assert np.all((sizes > 0) & (sizes <= width[ends]))
        plans.sequences_seconds(1, tasks, data, ends[order][None, :], sizes[order][None, :], alone)
        assert best == pytest.approx(alone[0], rel=1e-12)
