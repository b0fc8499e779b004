"""No batching: one task at a time through the pipeline (paper 1, Sec. IV-A, benchmark 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.serving_latency import ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.serving_latency.equal_sizes import EqualSizes, best_of_sizes, slices_of


@dataclass(frozen=True)
class NoBatching(EqualSizes):
    """One task at a time through the pipeline, shortest input first."""

    name: ClassVar[str] = "no-batching"
    source: ClassVar[str] = "paper 1, Sec. IV-A, benchmark 2"

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Batch no tasks, with every speculation length."""
        return best_of_sizes(problem, budget, lambda prepared, length: [slices_of(prepared.tasks, 1)])
