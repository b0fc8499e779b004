"""Sizes 2, 3, ... until the latency first rises or a batch no longer fits, for every speculation
length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.fields import PositiveInt
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.equal_sizes import (
    EqualSizes,
    feasible,
    inference_seconds,
    largest_feasible,
    slices_of,
)
from specopt.solvers.serving_latency.prepare import Prepared


@dataclass(frozen=True)
class HeuristicBatching(EqualSizes):
    """Sizes 2, 3, ... until the latency first rises or a batch no longer fits, for every
    speculation length.

    Parameters
    ----------
    first_size
        The size to begin with.
    """

    first_size: PositiveInt = 2

    name = "heuristic-batching"
    source = "paper 1, Sec. IV-A, benchmark 4, and Sec. IV-B, benchmark 3"

    def candidate(self, prepared: Prepared, length: int, budget: Budget) -> list[list[int]]:
        """Return batches of the last size before the latency rises."""
        previous, found, check = np.inf, None, budget.pace()
        for size in range(min(self.first_size, prepared.tasks), prepared.tasks + 1):
            check()
            batches = slices_of(prepared.tasks, size)
            if not feasible(prepared, batches):
                break
            seconds = inference_seconds(prepared, batches, length, budget)
            if seconds > previous:
                break
            previous, found = seconds, batches
        return found or largest_feasible(prepared, self.first_size)
