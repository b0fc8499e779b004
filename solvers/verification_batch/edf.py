"""Earliest deadline first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.verification_batch import VerificationBatchProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.verification_batch.method import VerificationBatchMethod, certify, offer_first_plan
from specopt.solvers.verification_batch.prepare import Prepared


@dataclass(frozen=True)
class EarliestDeadlineFirst(VerificationBatchMethod):
    """In order of deadlines, until one does not fit; hopeless requests are dropped first.

    Parameters
    ----------
    skip
        Go on behind a request that does not fit.
    """

    skip: bool = False

    name: ClassVar[str] = "edf"
    source: ClassVar[str] = "a standard of real-time scheduling"
    guarantee: ClassVar[str] = "none; a certified gap"
    complexity: ClassVar[str] = "O(n log n), with bound O(n^2)"

    def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
        """Take requests by deadline, ties by index."""
        prepared = Prepared(problem)
        offer_first_plan(prepared, budget)
        hopeless = set(prepared.hopeless)
        order = [int(i) for i in np.argsort(problem.deadline_seconds, kind="stable") if int(i) not in hopeless]
        return certify(prepared, prepared.in_order(order, self.skip), budget)
