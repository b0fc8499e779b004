"""The best constant allocation, as a reference for mixtures of rounds."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from specopt.models.fair_goodput.problem import FairGoodputProblem
from specopt.models.fields import Ints
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.method import (
    NO_MIN_RATES,
    FairGoodputMethod,
    drafts_at_most,
    offer_first_plan,
)
from specopt.solvers.fair_goodput.rounds import best_utility, constant
from specopt.solvers.method import Outcome

TOKENS_PER_CHECK = 4096
"""Number of tokens between two checks of the time limit."""


@dataclass(frozen=True)
class BestConstant(FairGoodputMethod):
    """Use the best allocation that is the same in every round."""

    name = "best-constant"
    source = "own; greedy on the utility's gains, per second under every end of drafting"
    guarantee = "best among the plans that never change"
    complexity = "O(N + C log N); O((N C)^2) at worst per second"
    takes = (NO_MIN_RATES, drafts_at_most(1_000_000))

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Find the allocation by a greedy, which is optimal because the gains of a client's
        tokens decrease.
        """
        offer_first_plan(problem, budget)
        if problem.per == "second":
            allocation = best_utility(problem, budget)
        else:
            allocation = best_allocation(problem, budget)
        plan = constant(problem, allocation)
        budget.offer(plan)
        return Outcome(plan=plan)


def best_allocation(problem: FairGoodputProblem, budget: Budget) -> Ints:
    """Return the integer allocation with the largest utility per round.

    Every token goes to the client whose utility gains most, as long as some client gains.
    """
    g, weights = problem.fairness, problem.weight.tolist()
    rates, caps = problem.acceptance_rates.tolist(), problem.max_tokens.tolist()
    drafts, goodput = [0] * problem.clients, [1.0] * problem.clients

    def gain(client: int) -> float:
        """Return the gain in utility of the client's next draft token."""
        if drafts[client] == caps[client]:
            return 0.0
        term, before = rates[client] ** (drafts[client] + 1), goodput[client]
        grown = math.log1p(term / before)
        if g == 0.0:
            grown = term
        elif g != 1.0:
            grown = before ** (1.0 - g) * math.expm1((1.0 - g) * grown) / (1.0 - g)
        return float(weights[client] * grown)

    heap = [(-gain(client), client) for client in range(problem.clients)]
    heapq.heapify(heap)
    for token in range(problem.budget_tokens):
        if token % TOKENS_PER_CHECK == 0:
            budget.check()
        loss, client = heap[0]
        if loss == 0.0:
            break
        drafts[client] += 1
        goodput[client] += rates[client] ** drafts[client]
        heapq.heapreplace(heap, (-gain(client), client))
    return np.array(drafts, np.int64)
