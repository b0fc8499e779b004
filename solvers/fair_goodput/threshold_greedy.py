"""The largest weighted sum of rates per second: one round, found by trying every end of drafting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.fair_goodput import FairGoodputProblem
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.method import FairGoodputMethod
from specopt.solvers.fair_goodput.rounds import Rounds, equal_drafts, mixture
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class ThresholdGreedy(FairGoodputMethod):
    """The best round for the weighted sum: greedy within every possible end of drafting."""

    name: ClassVar[str] = "threshold-greedy"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "own; Eq. 5 of paper 5 under every cap on the duration of a round"
    guarantee: ClassVar[str] = "optimal"
    complexity: ClassVar[str] = "O((N C)^2) at worst; most ends of drafting are ruled out at once"
    per: ClassVar[tuple[str, ...]] = ("second",)
    least_rates: ClassVar[bool] = False
    fairness: ClassVar[float] = 0.0
    max_drafts: ClassVar[int] = 1_000_000

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Find the best single round; mixing rounds cannot raise a weighted sum."""
        budget.offer(equal_drafts(problem))
        best, allocation = Rounds(problem).best_sum(problem.weight, budget)
        plan = mixture(problem, np.ones(1), allocation[None])
        budget.offer(plan)
        return Outcome(plan=plan, bound=best)
