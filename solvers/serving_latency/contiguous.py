"""Algorithms that find contiguous batches of sorted tasks, by the paper's recursion or as shortest
paths.

For one prefix of the tasks after another, each algorithm chooses where the last batch begins. It
runs in slices that are short enough to react to time limits and interrupts.
"""

from __future__ import annotations

import numpy as np

from specopt.models.fields import Ints
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import Stages, stages

_WORK_PER_CALL = 400_000  # batches rated per kernel call, which determine how often time is checked


def algorithm_1_batches(
    prepared: Prepared, length: int, budget: Budget
) -> tuple[list[Ints] | None, float]:
    """Run Algorithm 1 at one speculation length. Return its batches and their inference time T_inf
    in seconds.

    Each batch is an array of positions in the sorted task order, in ascending order. The batches
    are None if no partition fits in memory.
    """
    kernels = budget.load("serving_latency.algorithm_1")
    at = stages(prepared, length, conservative=True)
    tasks = prepared.tasks
    start = np.full(tasks + 1, -1)
    prefix = np.zeros((tasks + 1, 4))
    prefix[1:, kernels.BEST] = np.inf
    begins = np.ones(tasks + 2, np.int64)
    begins[0] = 0
    pool = np.zeros((32 * (tasks + 16), 5))
    pool[0, kernels.FROM] = 2  # prefix 0: both stages are free at time 0
    # each line changes pieces at most P - 1 times, and rounding may put a step between two pieces
    segments = np.zeros((1 + 2 * (length + 1) * (prepared.runtimes.shape[1] - 1), 5))
    row = 1
    while row <= tasks:
        budget.check()
        stop = prepared.rows_end(row, _WORK_PER_CALL)
        reached = kernels.algorithm_1_rows(
            row, stop, at.data, segments, start, prefix, begins, pool
        )
        if reached < stop:  # the pool is full
            pool = np.concatenate([pool, np.zeros_like(pool)])
        row = reached
    return backtrack(start, np.arange(tasks)), float(prefix[tasks, kernels.BEST])


def additive_batches(
    at: Stages, weights: tuple[float, float], budget: Budget, order: Ints | None = None
) -> tuple[list[Ints] | None, float]:
    """Return the contiguous batches that minimise the weighted sum of draft and verify times, and
    this minimum in seconds.

    Batches are contiguous in `order`. The result is (None, infinity) if no partition fits in
    memory. In sorted order, which is the default, the result is exact for conservative output
    lengths. In any other order, not every batch size above 256 is tried. The cost is O(K b_max),
    where b_max <= K is the size of the largest batch that fits.
    """
    kernels = budget.load("serving_latency.paths")
    tasks = at.prepared.tasks
    grid, order = (62, np.arange(tasks)) if order is None else (7, order)
    best, start = np.zeros(tasks + 1), np.full(tasks + 1, -1)
    row = 1
    while row <= tasks:
        budget.check()
        stop = at.prepared.rows_end(row, _WORK_PER_CALL)
        kernels.path_rows(row, stop, at.data, order, *weights, grid, best, start)
        row = stop
    return backtrack(start, order), float(best[tasks])


def backtrack(start: Ints, order: Ints) -> list[Ints] | None:
    """Reconstruct the batches from the choices of a dynamic program.

    `start` contains, for each prefix of `order`, the index in `order` at which the last batch of
    the prefix starts. Return None if a required entry of `start` is negative.
    """
    batches = []
    end = len(order)
    while end > 0:
        if start[end] < 0:
            return None
        batches.append(order[start[end] : end])
        end = start[end]
    return batches[::-1]
