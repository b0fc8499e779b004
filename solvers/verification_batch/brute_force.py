"""Brute force: every subset of the requests; where last digits matter, the judge decides. The oracle of the others."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.verification_batch.method import VerificationBatchMethod, plan_of
from specopt.solvers.verification_batch.prepare import Prepared

SUBSETS_PER_CHECK = 1024


@dataclass(frozen=True)
class BruteForceBatch(VerificationBatchMethod):
    """All subsets, one by one."""

    name: ClassVar[str] = "brute-force"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "enumeration of paper 2, Eq. 13-15 at one epoch"
    guarantee: ClassVar[str] = "optimal"
    complexity: ClassVar[str] = "O(2^n n)"
    max_size: ClassVar[int] = 16

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Enumerate."""
        batch, seen = best_subset(prepared, budget)
        objective = budget.offer(plan_of(batch))
        return Outcome(plan=plan_of(batch), bound=objective, stats={"subsets": seen, "hopeless": prepared.hopeless})


def best_subset(prepared: Prepared, budget: Budget) -> tuple[tuple[int, ...], int]:
    """Return the best of all batches, and how many there are."""
    problem = prepared.problem
    values = problem.expected_tokens.tolist()
    best, seen = 0.0, 1
    best_batch: tuple[int, ...] = ()
    for size in range(1, problem.requests + 1):
        for batch in combinations(range(problem.requests), size):
            seen += 1
            if seen % SUBSETS_PER_CHECK == 0:
                budget.check()
            value = sum(values[i] for i in batch)
            if value > best and prepared.admits(batch):
                best, best_batch = value, batch
    return best_batch, seen
