"""The method `optimal-stopping` for `draft-stopping`, which uses one mean acceptance rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.method import DraftStoppingMethod
from specopt.solvers.draft_stopping.prepare import Prepared
from specopt.solvers.draft_stopping.stopping import best_stopping
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class OptimalStopping(DraftStoppingMethod):
    """Find the policy that is optimal if tokens are accepted independently at the mean rate, as in
    Eq. 7 of paper 1.

    If some rounds are easy and others hard, long rounds are usually easy, so this rule stops long
    rounds too early.
    """

    name = "optimal-stopping"
    source = "own"
    guarantee = (
        "optimal for one class with one rate; otherwise none: may be slower than a fixed window"
    )
    complexity = "as belief"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Solve by backward recursion at increasing prices, with a single acceptance rate."""
        rates = np.full(prepared.most, prepared.mean_rate)
        plan, _, _ = best_stopping(rates, prepared.scores, prepared.times, budget.check)
        # Return the plan of this rule, even if the incumbent is better.
        return Outcome(plan=budget.incumbent if plan is None else plan, bound=budget.bound)
