"""Contiguous batches of tasks sorted by input length: the paper's recursion, and shortest paths.

Both look at every way to end a batch, one prefix after the other, in slices short enough that time limits and
interrupts are noticed.
"""

from __future__ import annotations

import numpy as np

from specopt.models.fields import Ints
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.prepare import Prepared

_LABELS_PER_CALL = 400_000
_PATHS_PER_CALL = 4_000_000


def algorithm_1_batches(prepared: Prepared, length: int, budget: Budget) -> tuple[list[list[int]] | None, float]:
    """Return the batches (sorted positions, ascending) and T_inf of Algorithm 1 for one speculation length."""
    kernels = budget.load("serving_latency")
    tasks = prepared.tasks
    boundary = np.zeros(tasks + 1, dtype=np.int64)
    best = np.full(tasks + 1, np.inf)
    best[0] = 0.0
    drafted = np.zeros(tasks + 1)
    prefill = np.zeros((tasks + 1, 2))
    ranges = np.zeros((tasks + 1, 4), dtype=np.int64)
    capacity = 64 * (tasks + 16)
    start = np.zeros(capacity, dtype=np.int64)
    value, slope = np.zeros(capacity), np.zeros(capacity)
    start[0:2] = 2  # prefix 0: both stages are free at time 0
    ranges[0] = (0, 1, 1, 1)
    used = np.array([2], dtype=np.int64)
    row = 1
    while row <= tasks:
        budget.check()
        stop = min(tasks + 1, row + max(1, _LABELS_PER_CALL // row))
        reached = kernels.algorithm_1_rows(
            prepared.inputs, row, stop, length, prepared.tokens_per_step(length), prepared.steps(length),
            float(prepared.problem.longest_output), *prepared.models, prepared.memory,
            boundary, best, drafted, prefill, ranges, start, value, slope, used,
        )  # fmt: skip
        if reached < stop:  # the pool is full
            start, value, slope = (np.concatenate([a, np.zeros_like(a)]) for a in (start, value, slope))
        row = reached
    return (None, np.inf) if np.isinf(best[tasks]) else (backtrack(boundary), float(best[tasks]))


def additive_batches(
    prepared: Prepared, length: int, draft_weight: float, verify_weight: float, budget: Budget
) -> tuple[Ints, float]:
    """Return the contiguous batches of least weighted stage time, as last starts S[i], and that time.

    Exact for conservative output lengths; O(K^2) or, with b_max the largest batch that fits, O(K b_max).
    """
    kernels = budget.load("serving_latency")
    best = np.full(prepared.tasks + 1, np.inf)
    best[0] = 0.0
    boundary = np.zeros(prepared.tasks + 1, dtype=np.int64)
    row = 1
    while row <= prepared.tasks:
        budget.check()
        stop = min(prepared.tasks + 1, row + max(1, _PATHS_PER_CALL // row))
        kernels.additive_rows(
            prepared.inputs, row, stop, length, prepared.tokens_per_step(length), prepared.steps(length),
            float(prepared.problem.longest_output), *prepared.models, prepared.memory,
            draft_weight, verify_weight, best, boundary,
        )  # fmt: skip
        row = stop
    return boundary, float(best[prepared.tasks])


def backtrack(boundary: Ints) -> list[list[int]]:
    """Return the batches, as sorted positions from 0, whose last starts are S[i] (from 1)."""
    batches = []
    end = len(boundary) - 1
    while end > 0:
        start = int(boundary[end])
        batches.append(list(range(start - 1, end)))
        end = start - 1
    return batches[::-1]
