"""Contiguous batches of tasks sorted by input length: the paper's recursion, and shortest paths.

Both algorithms consider every way to end a batch, one prefix at a time, in slices that are short
enough to react to time limits and interrupts.
"""

from __future__ import annotations

import numpy as np

from specopt.models.fields import Ints
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import stages

# per kernel call, a few hundredths of a second: these determine how often the clock is read
_LABELS_PER_CALL = 400_000
_PATHS_PER_CALL = 4_000_000


def algorithm_1_batches(
    prepared: Prepared, length: int, budget: Budget
) -> tuple[list[list[int]] | None, float]:
    """Return the batches and T_inf of Algorithm 1 for one speculation length.

    Batches are lists of sorted positions in ascending order, or None if no batches fit.
    """
    kernels = budget.load("serving_latency.algorithm_1")
    at = stages(prepared, length, conservative=True)
    tasks = prepared.tasks
    boundary = np.zeros(tasks + 1, np.int64)
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
        stop = prepared.rows_end(row, _LABELS_PER_CALL)
        reached = kernels.algorithm_1_rows(
            row, stop, at.data, segments, boundary, prefix, begins, pool
        )
        if reached < stop:  # the pool is full
            pool = np.concatenate([pool, np.zeros_like(pool)])
        row = reached
    return backtrack(boundary), float(prefix[tasks, kernels.BEST])


def additive_batches(
    prepared: Prepared, length: int, draft_weight: float, verify_weight: float, budget: Budget
) -> tuple[list[list[int]] | None, float]:
    """Return the contiguous batches with the smallest weighted stage time, and that time.

    Return None and infinity if no batches fit. The result is exact for conservative output lengths.
    The cost is O(K^2), or O(K b_max) if b_max is the size of the largest batch that fits.
    """
    kernels = budget.load("serving_latency.paths")
    at = stages(prepared, length, conservative=True)
    best = np.full(prepared.tasks + 1, np.inf)
    best[0] = 0.0
    boundary = np.zeros(prepared.tasks + 1, np.int64)
    row = 1
    while row <= prepared.tasks:
        budget.check()
        stop = prepared.rows_end(row, _PATHS_PER_CALL // (1 if at.linear else 8))
        kernels.additive_rows(row, stop, at.data, draft_weight, verify_weight, best, boundary)
        row = stop
    return backtrack(boundary), float(best[prepared.tasks])


def backtrack(boundary: Ints) -> list[list[int]] | None:
    """Return the batches, as sorted positions from 0, given the start S[i] (from 1) of the last
    batch of each prefix; None if a required S[i] is 0.
    """
    batches = []
    end = len(boundary) - 1
    while end > 0:
        start = int(boundary[end])
        if start == 0:
            return None
        batches.append(list(range(start - 1, end)))
        end = start - 1
    return batches[::-1]
