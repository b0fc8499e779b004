"""Algorithm 1 of paper 2 after dropping the requests that no batch can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.verification_batch import VerificationBatchProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.verification_batch.algorithm_1 import Algorithm1, algorithm_1
from specopt.solvers.verification_batch.method import certify, offer_first_plan
from specopt.solvers.verification_batch.prepare import Prepared


@dataclass(frozen=True)
class Algorithm1Drop(Algorithm1):
    """Algorithm 1 after dropping hopeless requests: late ones, and those too large for the memory.

    Then the first request in its order fits alone, and the batch is empty only if nothing fits. Its distance to the
    optimum stays unbounded.
    """

    name: ClassVar[str] = "algorithm-1-drop"
    source: ClassVar[str] = "paper 2, Algorithm 1, hopeless requests dropped first (own); ties by index"
    guarantee: ClassVar[str] = "none; a certified gap"

    def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
        """Drop, then build."""
        prepared = Prepared(problem)
        offer_first_plan(prepared, budget)
        hopeless = set(prepared.hopeless)
        left = [i for i in range(problem.requests) if i not in hopeless]
        batch, critical = algorithm_1(prepared, left, self.cost)
        return certify(prepared, batch, budget, critical=critical)
