"""The method `policy-iteration` for `draft-control`.

Each policy is optimal at the rate of the previous policy.
"""

from __future__ import annotations

from dataclasses import dataclass

from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, best_price, certify
from specopt.solvers.draft_control.prepare import Prepared
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class PolicyIteration(DraftControlMethod):
    """Alternately compute the rate of a policy and improve the policy at that rate.

    The improved policy uses the best action in every state. The rate never falls. Once no other
    action is better, the policy solves the optimality equation, even in transient states. Relative
    values do not depend on the action, so the improvement step only compares N - rate T, where N is
    the expected number of tokens and T is the duration of an iteration.
    """

    name = "policy-iteration"
    exact = True
    source = (
        "specopt; Eq. 12 of paper 3 as a semi-Markov decision process (Howard 1960, Jewell 1963)"
    )
    guarantee = "optimal"
    complexity = "O(S^3) once and O(S A) per iteration, usually 3 to 6 iterations"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Improve the policy until no state has a better action, and return the outcome."""
        choice, price, iterations = best_price(prepared, budget, offers=True)
        return certify(prepared, choice, budget, price, iterations=iterations)
