"""The method `decoupled` for `draft-control`."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import (
    DraftControlMethod,
    best_price,
    certify,
)
from specopt.solvers.draft_control.prepare import Prepared
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class Decoupled(DraftControlMethod):
    """Maximise N - price T in each state separately, where the price of a second is the resulting
    rate.

    Exact, because actions do not affect the chain: E[N] - price E[T] is a sum over states, and the
    largest price at which some policy still makes it 0 is the best rate (Dinkelbach 1967).
    """

    name = "decoupled"
    exact = True
    source = "own; Eq. 12 of paper 3, one price for all states"
    guarantee = "optimal"
    complexity = "O(S^3) once and O(S A) per round, usually 3 to 6 rounds"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Raise the price until no state has a better action."""
        choice, price, rounds = best_price(prepared, budget)
        return certify(prepared, choice, budget, price, rounds=rounds)
