"""The method `best-constant` for `fair-goodput`, a reference for mixtures of different rounds."""

from __future__ import annotations

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
from specopt.solvers.fair_goodput.region import largest_where
from specopt.solvers.fair_goodput.rounds import best_utility, constant, token_gain
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class BestConstant(FairGoodputMethod):
    """Use the same allocation in every round, and choose the best such allocation."""

    name = "best-constant"
    source = "specopt; greedy on the utility's gains, per second under every end of drafting"
    guarantee = "best among the plans that never change"
    complexity = "O(N log C) per level of gain, 60 levels; O((N C)^2) at worst per second"
    takes = (NO_MIN_RATES, drafts_at_most(1_000_000))

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Find the best constant allocation by a greedy algorithm.

        The result is optimal because each additional token of a client gains no more than the
        previous token.
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

    The allocation contains all tokens whose gain in utility exceeds a threshold, which is found by
    bisection. These tokens fit within the budget, but not together with all tokens whose gain
    equals the threshold. The latter are assigned to clients in order until the budget is used up.
    """
    rates, weight = problem.acceptance_rates, problem.weight
    most = problem.max_tokens.astype(np.float64)

    def above(level: float) -> Ints:
        """Return, for each client, the number of tokens whose gain exceeds `level`."""
        return largest_where(
            lambda tokens: weight * token_gain(rates, tokens, problem.fairness) > level, most
        ).astype(np.int64)

    least, largest = 0.0, float((weight * rates).max())
    if above(0.0).sum() <= problem.budget_tokens:
        return above(0.0)
    while True:
        budget.check()
        level = 0.5 * (least + largest)
        if not least < level < largest:
            break
        if above(level).sum() > problem.budget_tokens:
            least = level
        else:
            largest = level
    taken, more = above(largest), above(least) - above(largest)
    spare = problem.budget_tokens - int(taken.sum())
    before = np.cumsum(more) - more
    return np.asarray(taken + np.clip(spare - before, 0, more), np.int64)
