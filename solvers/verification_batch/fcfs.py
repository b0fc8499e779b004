"""Requests in one order, of arrival or of deadlines, until one does not fit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specopt.models.verification_batch import VerificationBatchProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.verification_batch.method import VerificationBatchMethod, certify
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

    name = "fcfs"
    source = "the batching of SLED, a baseline of paper 2"
    guarantee = "none; a certified gap"
    complexity = "O(n), with bound O(n^2)"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Take requests in their order."""
        able = prepared.without_hopeless(self.order(prepared.problem))
        return certify(prepared, prepared.in_order(able, self.skip), budget)

    def order(self, problem: VerificationBatchProblem) -> Iterable[int]:
        """Return all requests in their order."""
        return range(problem.requests)
