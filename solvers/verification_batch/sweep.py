"""The method `sweep`: a greedy by density for every tightest deadline, then exchanges from the best
result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.verification_batch.method import VerificationBatchMethod, certify
from specopt.solvers.verification_batch.prepare import SURE, Prepared


@dataclass(frozen=True)
class Sweep(VerificationBatchMethod):
    """Run a greedy by value per second for each tightest deadline D, and compare with the best
    single request.

    At the D of an optimal batch, the greedy up to the first request that does not fit, plus that
    request, is worth at least the relaxed knapsack. So the better of the greedy and the most
    valuable request is worth at least half of it, as long as memory does not bind. Where it may,
    greedies by value per byte and by value at the relaxation's prices join. From the best
    thresholds, exchanges follow: they never lose.
    """

    name = "sweep"
    source = "own; paper 2, Eq. 13-15 at one epoch, by the tightest admitted deadline"
    guarantee = "at least half of the optimum where memory is slack; a certified gap"
    complexity = "O(n^2), with bound"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Make one compiled call, then bound."""
        return certify(prepared, sweep(prepared, budget), budget)


def sweep(prepared: Prepared, budget: Budget) -> list[int]:
    """Return the batch of the sweep."""
    kernels = budget.load("verification_batch.sweep")
    items = kernels.Items(*prepared.columns_within(SURE))
    taken = np.zeros(len(prepared.items), np.bool_)
    prepared.call(budget, kernels.sweep, prepared.ends, items, taken, partial=True)
    batch: list[int] = prepared.items[taken].tolist()
    return batch
