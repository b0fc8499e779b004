"""Draft control one state at a time: whatever is done now, the next state is the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.draft_control import DraftControlProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import (
    DraftControlMethod,
    best_price,
    certify,
    offer_first_plan,
    shares_of,
)
from specopt.solvers.draft_control.prepare import prepare
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class Decoupled(DraftControlMethod):
    """Every state maximises N - price T by itself; the price of a second is the rate that this gives.

    Exact, because the actions do not touch the chain: E[N] - price E[T] is a sum over states, and the largest price
    at which some policy still makes it 0 is the best rate (Dinkelbach 1967).
    """

    name: ClassVar[str] = "decoupled"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "own; Eq. 12 of paper 3, one price for all states"
    guarantee: ClassVar[str] = "optimal"
    complexity: ClassVar[str] = "O(S^3) once and O(S A) per round, usually 3 to 6 rounds"

    def run(self, problem: DraftControlProblem, budget: Budget) -> Outcome:
        """Raise the price until no state has a better action."""
        prepared = prepare(problem)
        offer_first_plan(prepared, budget)
        kernels = budget.load("draft_control")
        nothing = np.zeros(prepared.states, dtype=np.int64)
        lengths, indices, price, rounds = best_price(
            kernels, prepared, shares_of(kernels, prepared), nothing + prepared.shortest, nothing, budget
        )
        budget.offer(prepared.plan(lengths, indices))
        return certify(kernels, prepared, lengths, indices, budget, price, rounds=rounds)
