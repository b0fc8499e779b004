"""Batches of the largest size that fits with the longest input and output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.equal_sizes import EqualSizes, slices_of
from specopt.solvers.serving_latency.prepare import Prepared


@dataclass(frozen=True)
class MaxBatching(EqualSizes):
    """Batches of the largest size that fits with the longest input and output."""

    name: ClassVar[str] = "max-batching"
    source: ClassVar[str] = "paper 1, Sec. IV-B, benchmark 2"

    def candidate(self, prepared: Prepared, length: int, budget: Budget) -> list[list[int]]:
        """Batch by the largest size that fits any tasks."""
        padded, outputs = float(prepared.inputs.max()), float(prepared.outputs.max())
        sizes = range(prepared.tasks, 1, -1)
        size = next((size for size in sizes if prepared.fits(size, padded, outputs)), 1)
        return slices_of(prepared.tasks, size)
