"""The method `brute-force`, which enumerates every allocation within the budget and the caps.

Enumeration makes no assumptions about the optimum, so the other methods are tested against this
method.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from specopt.models.draft_allocation.problem import DraftAllocationPlan, DraftAllocationProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_allocation.method import DraftAllocationMethod, offer_first_plan
from specopt.solvers.method import Outcome

ALLOCATIONS_PER_CHECK = 4096


@dataclass(frozen=True)
class BruteForceAllocation(DraftAllocationMethod):
    """Brute force over all allocations."""

    name = "brute-force"
    exact = True
    source = "enumeration of Eq. 5, paper 5"
    guarantee = "optimal"
    complexity = "O(number of allocations), without caps (N + C)! / (N! C!)"
    max_size = 200_000
    size_unit = "allocations"

    def size_of(self, problem: DraftAllocationProblem) -> float:
        """Return the number of feasible allocations."""
        return allocations(problem.caps.tolist(), problem.budget_tokens, self.max_size)

    def run(self, problem: DraftAllocationProblem, budget: Budget) -> Outcome:
        """Return the allocation with the highest value, found by enumerating all allocations."""
        offer_first_plan(problem, budget)
        values = [
            list(accumulate(weight * rate**n for n in range(cap + 1)))
            for weight, rate, cap in zip(
                problem.weights.tolist(),
                problem.acceptance_rates.tolist(),
                problem.caps.tolist(),
                strict=True,
            )
        ]
        best, best_drafts, seen = -math.inf, (0,) * problem.clients, 0
        for seen, (value, drafts) in enumerate(
            enumerate_allocations(values, problem.budget_tokens), start=1
        ):
            if value > best:
                best, best_drafts = value, drafts
            if seen % ALLOCATIONS_PER_CHECK == 0:
                budget.check()
        plan = DraftAllocationPlan(draft_tokens=np.array(best_drafts, np.int64))
        return Outcome(plan=plan, bound=budget.offer(plan), stats={"allocations": seen})


def allocations(caps: list[int], budget: int, enough: int) -> float:
    """Count the allocations within the caps and the budget.

    Return infinity if there are more than `enough` allocations.
    """
    ways = [1]  # ways[t]: number of allocations of t tokens to the clients so far
    for cap in filter(None, caps):
        if cap >= enough:
            return math.inf  # this client alone has more than `enough` lengths
        sums = list(accumulate(ways + [0] * cap))
        fewer = [0] * (cap + 1) + sums
        ways = [many - few for many, few in zip(sums, fewer, strict=False)][: budget + 1]
        if sum(ways) > enough:
            return math.inf
    return sum(ways)


def enumerate_allocations(
    values: list[list[float]], budget: int
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield every allocation within the budget as a pair (value, drafts), where `drafts` contains
    the number of draft tokens for each client.

    values[i][S] is the value of S draft tokens for client i.
    """
    last = len(values) - 1
    stack: list[tuple[int, int, float, tuple[int, ...]]] = [(0, budget, 0.0, ())]
    while stack:
        client, left, value, drafts = stack.pop()
        for length in range(min(left, len(values[client]) - 1) + 1):
            one = (value + values[client][length], (*drafts, length))
            if client == last:
                yield one
            else:
                stack.append((client + 1, left - length, *one))
