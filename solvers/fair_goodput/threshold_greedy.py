"""The method `threshold-greedy` for `fair-goodput`.

It maximises a weighted sum of rates per second.
"""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.fair_goodput.problem import FairGoodputProblem
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.method import (
    NO_MIN_RATES,
    PER_SECOND,
    WEIGHTED_SUM,
    FairGoodputMethod,
    offer_first_plan,
)
from specopt.solvers.fair_goodput.rounds import best_sum, constant
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class ThresholdGreedy(FairGoodputMethod):
    """Find the round with the largest weighted sum of rates per second.

    For each time at which drafting may end, the tokens of the round are chosen greedily.
    """

    name = "threshold-greedy"
    exact = True
    source = "own; Eq. 5 of paper 5 under every cap on the duration of a round"
    guarantee = "optimal"
    complexity = "O(E log E) for E draft tokens that may pay off, about ten times"
    takes = (PER_SECOND, NO_MIN_RATES, WEIGHTED_SUM)

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Find the best single round. Mixing rounds cannot increase a weighted sum of rates."""
        offer_first_plan(problem, budget)
        best, allocation = best_sum(problem, problem.weight, budget)
        plan = constant(problem, allocation)
        budget.offer(plan)
        return Outcome(plan=plan, bound=best)
