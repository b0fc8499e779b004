"""The method `belief` for `draft-stopping`, which solves the problem by dynamic programming."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.problem import TOLERANCE
from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.method import DraftStoppingMethod
from specopt.solvers.draft_stopping.prepare import Prepared
from specopt.solvers.draft_stopping.stopping import REFINEMENTS, best_stopping
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class Belief(DraftStoppingMethod):
    """Optimal stopping based on the belief that all tokens drafted so far will be accepted.

    The belief is the probability that no token of the round has been rejected so far. The
    acceptance rate may differ between positions. No belief about the class of the round is needed,
    because scores depend on the class only through the outcomes of the tokens. While all tokens are
    accepted, the scores carry no more information about the class than the number of tokens. Only
    the acceptance rate at each position matters, averaged over the rounds that reach the position.
    """

    name = "belief"
    exact = True
    source = "own"
    guarantee = "optimal; with many scores and tokens within the gap that it reports"
    complexity = "O(L B P log P) a price, for P pieces of the value"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Solve by backward recursion at increasing prices.

        Each solve is more accurate than the previous solve.
        """
        price = 1.0
        for worthless in REFINEMENTS:
            plan, price, most = best_stopping(
                prepared.averaged,
                prepared.scores,
                prepared.times,
                budget.check,
                price=price,
                worthless=worthless,
            )
            if plan is None:
                break
            budget.offer(plan)
            budget.improve_bound(most / prepared.seconds)
            if budget.bound <= budget.objective * (1.0 + max(budget.gap, 0.5 * TOLERANCE)):  # type: ignore[operator]
                break
        return Outcome.of(budget)
