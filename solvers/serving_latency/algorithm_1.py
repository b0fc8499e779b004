"""Algorithm 1 of paper 1: a dynamic program over contiguous batches, and the best speculation length.

Tasks are sorted by input length. Y[i, n, 0] and Y[i, n, 1] are the times at which both stages have finished the
first i tasks at step n, under the one partition of those tasks that gives the least total latency (Eq. 29-32, with
the corrections of the misprints: ``max{Y[j-1,n,0] + T^d, Y[j-1,n,1]} + T^v``). Keeping one partition per prefix is
what makes it a heuristic; batches run in ascending order of input length.

The completion times are kept as functions of n, convex and piecewise linear, instead of one number per step: the
cost is O(K^2 P) per speculation length, P the number of linear pieces (a handful), whatever the number of steps N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.fields import Ints
from specopt.models.serving_latency import ServingLatencyPlan
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.bound import lower_bound
from specopt.solvers.serving_latency.method import Found, PerMechanism
from specopt.solvers.serving_latency.prepare import Prepared, quick_batches

TIE = 1e-12
_ENTRIES_PER_CALL = 400_000  # keeps a kernel call around 0.1 s, so that limits and interrupts are noticed


@dataclass(frozen=True)
class Algorithm1(PerMechanism):
    """The paper's dynamic program for every speculation length, with optimal bandwidth shares."""

    name: ClassVar[str] = "algorithm-1"
    source: ClassVar[str] = "paper 1, Algorithm 1, Eq. 27-33"
    guarantee: ClassVar[str] = "none; measured 1-3 % above the optimum at the paper's setting"
    complexity: ClassVar[str] = "O(l_max K^2), whatever the number of decoding steps"
    mechanisms: ClassVar[tuple[str, ...]] = ("pipelined",)

    def find(self, prepared: Prepared, budget: Budget) -> Found:
        """Run the dynamic program for every l and keep the best; on known lengths it plans with O_max."""
        best = np.inf
        plan = None
        for length in prepared.lengths:
            batches, seconds = algorithm_1_batches(prepared, length, budget)
            if batches is not None and (plan is None or seconds < best * (1 - TIE)):
                best = seconds
                plan = prepared.plan(batches, length)
                budget.offer(plan)
        if plan is None:
            plan = plan_without_maximum(prepared, prepared.lengths[0])
            budget.offer(plan)
        return Found(plan, lower_bound(prepared, budget))


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
        stop = min(tasks + 1, row + max(1, _ENTRIES_PER_CALL // row))
        reached = kernels.algorithm_1_rows(
            prepared.inputs, row, stop, length, prepared.tokens_per_step(length), prepared.steps(length),
            float(prepared.problem.longest_output), *prepared.models, prepared.memory,
            boundary, best, drafted, prefill, ranges, start, value, slope, used,
        )  # fmt: skip
        if reached < stop:  # the pool is full
            start, value, slope = (np.concatenate([a, np.zeros_like(a)]) for a in (start, value, slope))
        row = reached
    return (None, np.inf) if np.isinf(best[tasks]) else (backtrack(boundary), float(best[tasks]))


def plan_without_maximum(prepared: Prepared, length: int) -> ServingLatencyPlan:
    """Return batches as large as memory allows, for known lengths that fit although O_max does not.

    Algorithm 1 plans with O_max and has no feasible boundary there.
    """
    batches = quick_batches(prepared)
    assert batches is not None, "every task fits alone"
    return prepared.plan(batches, length)


def backtrack(boundary: Ints) -> list[list[int]]:
    """Return the batches, as sorted positions from 0, whose last starts are S[i] (from 1)."""
    batches = []
    end = len(boundary) - 1
    while end > 0:
        start = int(boundary[end])
        batches.append(list(range(start - 1, end)))
        end = start - 1
    return batches[::-1]
