"""The method `brute-force` for `verification-batch` problems, which enumerates all batches."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.verification_batch.method import VerificationBatchMethod, plan_of
from specopt.solvers.verification_batch.pareto import MAX_REQUESTS, best_subset
from specopt.solvers.verification_batch.prepare import Prepared


@dataclass(frozen=True)
class BruteForceBatch(VerificationBatchMethod):
    """Enumerate all subsets of the requests.

    If the feasibility of a subset depends on rounding, the judge decides.
    """

    name = "brute-force"
    exact = True
    source = "enumeration of paper 2, Eq. 13-15 at one epoch"
    guarantee = "optimal"
    complexity = "O(2^n n)"
    max_size = MAX_REQUESTS

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Evaluate all batches and return the best one."""
        batch, seen = best_subset(prepared, budget)
        objective = budget.offer(plan_of(batch))
        return Outcome(
            plan=plan_of(batch),
            bound=objective,
            stats={"subsets": seen},
        )
