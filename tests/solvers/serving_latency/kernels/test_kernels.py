"""The closed forms of the kernels against the sums that they stand for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt import LinearRuntime
from specopt.kinds.serving_latency.strategies import linear_runtimes, problems
from specopt.solvers.serving_latency.kernels import algorithm_1, annealing, plans, rebatching
from specopt.solvers.serving_latency.kernels import stages as kernels
from specopt.solvers.serving_latency.prepare import prepare
from specopt.solvers.serving_latency.stages import stages, workspace
from specopt.solvers.serving_method import envelope

values = st.integers(0, 1000).map(lambda value: value / 8)


@settings(max_examples=100)
@given(values, values, values, values, st.integers(1, 60))
def test_sum_of_max(a: float, sa: float, c: float, sc: float, m: int) -> None:
    """Tests that the sum of the larger of two lines is right, wherever they cross."""
    expected = math.fsum(max(a + sa * k, c + sc * k) for k in range(m))
    assert algorithm_1.sum_of_max(a, sa, c, sc, m) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=100)
@given(st.lists(linear_runtimes(), min_size=1, max_size=4), values, values, st.integers(0, 60))
def test_sum_of_lines(pieces: list[LinearRuntime], first: float, step: float, count: int) -> None:
    """Tests that the sum of a runtime over growing work is right across the corners of the
    runtime.
    """
    scale = 1e6  # where slopes of 1e-12..1e-6 and overheads of 1e-5..10 meet
    works = [first * scale + k * step * scale for k in range(count)]
    expected = math.fsum(
        max(p.seconds_per_flop * work + p.overhead_seconds for p in pieces) for work in works
    )
    runtimes = np.stack([envelope(_Pieces(pieces))] * 2)  # type: ignore[arg-type]
    task, setting = np.zeros((1, 8)), np.zeros(10)
    task[0, kernels.VERIFY_2], setting[kernels.MORE_VERIFY] = first * scale, step * scale
    found = kernels.sum_of_lines(task, setting, runtimes, kernels.VERIFY, 1.0, 0, 2, count)
    assert found == pytest.approx(expected, rel=1e-11)


class _Pieces:
    """Stands for a runtime of any number of pieces."""

    def __init__(self, pieces: list[LinearRuntime]) -> None:
        self.pieces = tuple(pieces)


@settings(max_examples=50)
@given(problems(mechanisms=["pipelined"], max_output=60, max_length=5), st.integers(1, 5))
def test_sums_of_stage_times(problem: object, size: int) -> None:
    """Tests that the sums of T^d and T^v over the decoding steps are those of their terms."""
    prepared = prepare(problem)  # type: ignore[arg-type]
    last = prepared.tasks - 1
    for length in prepared.lengths:
        at = stages(prepared, length, conservative=True)
        steps = int(at.steps[last])
        single = [
            kernels.range_stages(*at.arrays, float(size), last, n, 1) for n in range(1, steps + 1)
        ]
        sums = kernels.all_stages(*at.arrays, float(size), last, steps)
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
def test_local_search_rates_blocks_as_others_do(problem: object) -> None:
    """Tests that the latency that a search over blocks ends with is that of its blocks, for any
    runtimes.
    """
    prepared = prepare(problem)  # type: ignore[arg-type]
    tasks, stream = prepared.tasks, np.array([1], np.uint64)
    for length in prepared.lengths:
        at, work, found = stages(prepared, length), workspace(plans, tasks), np.empty(1)
        blocks, count, seconds = (
            np.zeros((6, tasks), np.int64),
            np.array([tasks]),
            np.array([math.inf]),
        )
        blocks[0], blocks[1] = np.arange(1, tasks + 1), 1
        for out in (seconds, found):  # of every task alone, and at the end
            ends, sizes = (np.ascontiguousarray(rows[None, : count[0]]) for rows in blocks[:2])
            plans.sequences_seconds(1, count[0], *at.arrays, ends, sizes, *work, out)
            if out is seconds:
                annealing.improve_sequence(
                    100, *at.arrays, 1e-3, *work, blocks, count, seconds, stream
                )
        assert seconds == pytest.approx(found, rel=1e-12)


def test_tasks_of_a_step() -> None:
    """Tests that the tasks of a step are those that last so long, and their output lengths come in
    rising order.
    """
    task = np.zeros((4, 1 + max(kernels.STEPS, kernels.OUTPUT)))
    task[:, kernels.STEPS], task[:, kernels.OUTPUT] = (9, 2, 5, 7), (90, 20, 50, 70)
    active, least = np.full(5, -1, np.int64), np.full(5, -1.0)
    assert rebatching.active_tasks(task, np.array([1, 2, 3, 0]), 5, active, least) == 3
    assert (active[:3].tolist(), least[:3].tolist()) == ([0, 2, 3], [50.0, 70.0, 90.0])
