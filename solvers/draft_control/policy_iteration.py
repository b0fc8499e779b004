"""The exact methods `policy-iteration` and `decoupled` for `draft-control`, two views of one loop:
each policy is the best one at the rate of the policy before.
"""

from __future__ import annotations

from dataclasses import dataclass

from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, best_price, certify
from specopt.solvers.draft_control.prepare import Prepared
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class PolicyIteration(DraftControlMethod):
    """Evaluate a policy's rate; take the action of largest value at it in every state; repeat.

    The rate never falls, and where no action is better the policy solves the optimality equation,
    in transient states too. Relative values do not depend on the action: N - rate T decides in the
    improvement.
    """

    name = "policy-iteration"
    exact = True
    source = "own; Eq. 12 of paper 3 as a semi-Markov decision process (Howard 1960, Jewell 1963)"
    guarantee = "optimal"
    complexity = "O(S^3) once and O(S A) per iteration, usually 3 to 6 iterations"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Iterate until no state has a better action."""
        choice, price, iterations = best_price(prepared, budget)
        return certify(prepared, choice, budget, price, iterations=iterations)


@dataclass(frozen=True)
class Decoupled(PolicyIteration):
    """Maximise N - price T in each state separately, where the price of a second is the resulting
    rate.

    Exact, because actions do not affect the chain: E[N] - price E[T] is a sum over states, and the
    largest price at which some policy still makes it 0 is the best rate (Dinkelbach 1967).
    """

    name = "decoupled"
    source = "own; Eq. 12 of paper 3, one price for all states"
    complexity = "O(S^3) once and O(S A) per round, usually 3 to 6 rounds"
