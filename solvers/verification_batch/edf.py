"""In order of deadlines, until one does not fit; hopeless requests are dropped first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from specopt.models.verification_batch import VerificationBatchProblem
from specopt.solvers.verification_batch.fcfs import FirstComeFirstServed


@dataclass(frozen=True)
class EarliestDeadlineFirst(FirstComeFirstServed):
    """In order of deadlines, until one does not fit; hopeless requests are dropped first.

    Parameters
    ----------
    skip
        Go on behind a request that does not fit.
    """

    name = "edf"
    source = "a standard of real-time scheduling"
    complexity = "O(n log n), with bound O(n^2)"

    def order(self, problem: VerificationBatchProblem) -> Iterable[int]:
        """Return the requests by deadline, ties by index."""
        order: list[int] = np.argsort(problem.deadline_seconds, kind="stable").tolist()
        return order
