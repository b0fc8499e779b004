"""Batches of the largest size that fits with the longest input and output."""

from __future__ import annotations

import bisect
from dataclasses import dataclass

from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.equal_sizes import EqualSizes, slices_of
from specopt.solvers.serving_latency.prepare import Prepared


@dataclass(frozen=True)
class MaxBatching(EqualSizes):
    """Batches of the largest size that fits with the longest input and output."""

    name = "max-batching"
    source = "paper 1, Sec. IV-B, benchmark 2"

    def candidate(self, prepared: Prepared, length: int, budget: Budget) -> list[list[int]]:
        """Batch by the largest size that fits any tasks."""
        padded, outputs = float(prepared.inputs.max()), float(prepared.outputs.max())
        sizes = range(2, prepared.tasks + 1)
        more = bisect.bisect_left(
            sizes, True, key=lambda size: not prepared.fits(size, padded, outputs)
        )
        return slices_of(prepared.tasks, 1 + more)
