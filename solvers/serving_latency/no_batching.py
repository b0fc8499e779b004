"""No batching: one task at a time through the pipeline (paper 1, Sec. IV-A, benchmark 2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.equal_sizes import (
    EqualSizes,
    slices_of,
)
from specopt.solvers.serving_latency.prepare import Prepared


@dataclass(frozen=True)
class NoBatching(EqualSizes):
    """One task at a time through the pipeline, shortest input first."""

    name: ClassVar[str] = "no-batching"
    source: ClassVar[str] = "paper 1, Sec. IV-A, benchmark 2"

    def candidates(self, prepared: Prepared, length: int, budget: Budget) -> Iterable[list[list[int]]]:
        """Return batches of one task."""
        return [slices_of(prepared.tasks, 1)]
