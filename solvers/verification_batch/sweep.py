"""The method `sweep` for `verification-batch`.

It runs a greedy algorithm by value per second for every tightest deadline, and improves the best
results by exchanging requests.
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
    """Run a greedy algorithm by value per second for each tightest deadline.

    The best results are improved by exchanges, and the best single request is considered as well.

    At the deadline D of an optimal batch, the greedy batch up to and including the first request
    that does not fit has at least the value of the relaxed knapsack. As long as memory does not
    bind, the better of the greedy batch and the most valuable request therefore has at least half
    of that value. If memory may bind, greedy algorithms by value per byte and by value per priced
    cost are also run. Exchanges then start from the best thresholds, and never decrease the value.
    """

    name = "sweep"
    source = "specopt; paper 2, Eq. 13-15 at one epoch, by the tightest admitted deadline"
    guarantee = "at least half of the optimum where memory is slack; a certified gap"
    complexity = "O(n^2), with bound"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Find a batch in one compiled call, and then compute an upper bound."""
        return certify(prepared, sweep(prepared, budget), budget)


def sweep(prepared: Prepared, budget: Budget) -> list[int]:
    """Return a good batch, found by greedy algorithms and exchanges."""
    kernels = budget.load("verification_batch.sweep")
    items = kernels.Items(*prepared.columns_within(SURE))
    taken = np.zeros(len(prepared.items), np.bool_)
    prepared.call(budget, kernels.sweep, prepared.ends, items, taken, partial=True)
    batch: list[int] = prepared.items[taken].tolist()
    return batch
