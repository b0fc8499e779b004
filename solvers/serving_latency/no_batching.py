"""One task at a time through the pipeline, shortest input first."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.equal_sizes import EqualSizes, slices_of
from specopt.solvers.serving_latency.prepare import Prepared


@dataclass(frozen=True)
class NoBatching(EqualSizes):
    """One task at a time through the pipeline, shortest input first."""

    name = "no-batching"
    source = "paper 1, Sec. IV-A, benchmark 2"

    def fewest_batches(self, prepared: Prepared) -> float:
        """Return the number of tasks."""
        return prepared.tasks

    def candidate(self, prepared: Prepared, length: int, budget: Budget) -> list[list[int]]:
        """Batch no tasks."""
        return slices_of(prepared.tasks, 1)
