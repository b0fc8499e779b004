"""Equal drafts in every round: the baseline Fixed-S."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.fair_goodput import FairGoodputProblem
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.method import NO_LEAST_RATES, FairGoodputMethod
from specopt.solvers.fair_goodput.rounds import equal_drafts
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class Fixed(FairGoodputMethod):
    """Everybody drafts the same number of tokens in every round: Fixed-S."""

    name = "fixed"
    source = "paper 5, Sec. IV-B: S_i = floor(C / N)"
    guarantee = "none"
    complexity = "O(N)"
    takes = (NO_LEAST_RATES,)

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Divide the budget evenly, rounded down."""
        plan = equal_drafts(problem)
        budget.offer(plan)
        return Outcome(plan=plan)
