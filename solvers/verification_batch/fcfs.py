"""First come, first served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.verification_batch import VerificationBatchProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.verification_batch.method import VerificationBatchMethod, certify, offer_first_plan
from specopt.solvers.verification_batch.prepare import Prepared


@dataclass(frozen=True)
class FirstComeFirstServed(VerificationBatchMethod):
    """In order of arrival, until one does not fit; hopeless requests are dropped first.

    Parameters
    ----------
    skip
        Go on behind a request that does not fit.
    """

    skip: bool = False

    name: ClassVar[str] = "fcfs"
    source: ClassVar[str] = "the batching of SLED, a baseline of paper 2"
    guarantee: ClassVar[str] = "none; a certified gap"
    complexity: ClassVar[str] = "O(n), with bound O(n^2)"

    def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
        """Take requests by index."""
        prepared = Prepared(problem)
        offer_first_plan(prepared, budget)
        hopeless = set(prepared.hopeless)
        order = [i for i in range(problem.requests) if i not in hopeless]
        return certify(prepared, prepared.in_order(order, self.skip), budget)
