"""The method `enumeration` for `fair-goodput`, which tries all integer allocations.

It finds the fairest mixture of allocations by brute force. The search makes no assumption about
which rounds are useful in a mixture, because each mixture is compared with every allocation. The
other methods are tested against this method, for rates per round and per second.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from specopt.models.fair_goodput.problem import FairGoodputProblem
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.draft_allocation.brute_force import allocations, enumerate_allocations
from specopt.solvers.fair_goodput.column_generation import Search
from specopt.solvers.fair_goodput.method import FairGoodputMethod, offer_first_plan
from specopt.solvers.fair_goodput.rounds import rates_of
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class Enumeration(FairGoodputMethod):
    """Optimise a mixture of allocations, and search all allocations for an improvement."""

    name = "enumeration"
    exact = True
    source = "the definition of region (2), paper 5: the hull of mu over all allocations"
    guarantee = "optimal, to 1e-6, with the best allocation at the mixture's prices as proof"
    complexity = "(C + N)! / (C! N!) columns: 2,002 for N = 5, C = 9"
    max_size = 3_000
    size_unit = "allocations"
    bytes_per_part = 4000.0
    tolerance = 1e-6

    def size_of(self, problem: FairGoodputProblem) -> float:
        """Return the number of integer allocations."""
        return allocations(problem.max_tokens.tolist(), problem.budget_tokens, self.max_size)

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Alternately optimise the mixture and add the best allocation at its prices.

        The search ends when no allocation has a larger value than the mixture.
        """
        offer_first_plan(problem, budget)
        return ExhaustiveSearch(problem, budget).run()


class ExhaustiveSearch(Search):
    """Column generation that finds the best round by trying every allocation."""

    def __init__(self, problem: FairGoodputProblem, budget: Budget) -> None:
        super().__init__(problem, budget)
        nothing = [[0.0] * (cap + 1) for cap in problem.max_tokens.tolist()]
        every = enumerate_allocations(nothing, problem.budget_tokens)
        self.table = [np.array(one, np.int64) for _, one in every]
        self.columns = np.array([rates_of(problem, one) for one in self.table])

    @cached_property
    def spares(self) -> Floats:
        """Amounts by which the rates of each allocation exceed the minimum rates.

        There is one row per allocation (see `spare_of`).
        """
        return np.array([self.spare_of(one) for one in self.table])

    def best_round(self, prices: Floats, extra: Floats) -> tuple[float, Ints]:
        """Return the largest value of an allocation at the prices `prices`, and that allocation.

        The arguments have the same meaning as in `Search.best_round`.
        """
        worth = self.columns @ prices
        if extra.any():
            worth += self.spares @ extra
        best = int(worth.argmax())
        return float(worth[best]), self.table[best]

    def lower(self, amounts: Floats) -> None:
        """Lower the minimum rates by the given amounts."""
        self.spares += amounts
        super().lower(amounts)
