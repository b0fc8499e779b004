"""The method `greedy`, which allocates one token at a time to the client with the largest marginal
value.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specopt.models.draft_allocation.problem import DraftAllocationPlan, DraftAllocationProblem
from specopt.models.errors import OutOfTime, Stopped
from specopt.solvers.budget import Budget
from specopt.solvers.draft_allocation.method import (
    SMALLEST,
    DraftAllocationMethod,
    certify,
    offer_first_plan,
    scaled,
)
from specopt.solvers.method import Outcome

TOKENS_PER_CHECK = 4096


def take_largest(
    problem: DraftAllocationProblem, drafts: list[int], tokens: int, check: Callable[[], None]
) -> None:
    """Allocate up to `tokens` tokens in order of decreasing marginal value, and increase the
    clients' counts in `drafts` accordingly.

    On entry, all entries of `drafts` must be zero. Tokens that add no value are not allocated.
    """
    weights: list[float] = scaled(problem.weights).tolist()
    rates: list[float] = problem.acceptance_rates.tolist()
    caps: list[int] = problem.caps.tolist()
    heap = [
        (-weight * rate, client)
        for client, (weight, rate) in enumerate(zip(weights, rates, strict=True))
        if caps[client] > 0 and weight * rate >= SMALLEST
    ]
    heapq.heapify(heap)
    while heap and tokens > 0:
        tokens -= 1
        if tokens % TOKENS_PER_CHECK == 0:
            check()
        client = heap[0][1]
        drafts[client] += 1
        marginal = weights[client] * rates[client] ** (drafts[client] + 1)
        if drafts[client] < caps[client] and marginal >= SMALLEST:
            heapq.heapreplace(heap, (-marginal, client))
        else:
            heapq.heappop(heap)


@dataclass(frozen=True)
class Greedy(DraftAllocationMethod):
    """A greedy method that allocates each token to the client with the largest marginal value. Ties
    go to the client with the lower index.

    The method is exact because the marginal values w_i a_i^n of a client never increase with n.
    Hence no remaining token of any client has a larger marginal value than the token that is
    allocated next.
    """

    name = "greedy"
    exact = True
    source = "paper 5, Eq. 5"
    guarantee = "optimal"
    complexity = "O(N + C log N)"

    def run(self, problem: DraftAllocationProblem, budget: Budget) -> Outcome:
        """Allocate tokens one at a time until the budget is exhausted or no remaining token adds
        value.
        """
        offer_first_plan(problem, budget)
        drafts = [0] * problem.clients
        try:
            take_largest(problem, drafts, problem.budget_tokens, budget.check)
        except (OutOfTime, Stopped, KeyboardInterrupt):
            budget.offer(DraftAllocationPlan(draft_tokens=np.array(drafts, np.int64)))
            raise
        return certify(problem, np.array(drafts, np.int64), budget)
