"""Batches of a small fixed size."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.fields import PositiveInt
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.equal_sizes import EqualSizes, largest_feasible
from specopt.solvers.serving_latency.prepare import Prepared


@dataclass(frozen=True)
class StaticBatching(EqualSizes):
    """Batches of a small fixed size.

    Parameters
    ----------
    size
        Tasks per batch; a smaller size is used where this one does not fit the memory.
    """

    size: PositiveInt = 8

    name = "static-batching"
    source = "paper 1, Sec. IV-B, benchmark 1"

    def candidate(self, prepared: Prepared, length: int, budget: Budget) -> list[list[int]]:
        """Batch by the fixed size."""
        return largest_feasible(prepared, self.size)
