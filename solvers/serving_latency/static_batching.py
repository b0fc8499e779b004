"""Static batching: batches of a small fixed size (paper 1, Sec. IV-B, benchmark 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.fields import PositiveInt
from specopt.models.serving_latency import ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.serving_latency.equal_sizes import EqualSizes, best_of_sizes, largest_feasible


@dataclass(frozen=True)
class StaticBatching(EqualSizes):
    """Batches of a small fixed size.

    Parameters
    ----------
    size
        Tasks per batch; a smaller size is used where this one does not fit the memory.
    """

    size: PositiveInt = 8

    name: ClassVar[str] = "static-batching"
    source: ClassVar[str] = "paper 1, Sec. IV-B, benchmark 1"

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Try the fixed size, with every speculation length."""
        return best_of_sizes(problem, budget, lambda prepared, length: [largest_feasible(prepared, self.size)])
