"""The optimal plan, with proof, where batch costs add up: sequential and autoregressive serving.

Without overlap a step lasts the sum of its batches' stage times, in any order. With conservative output lengths
contiguous batches in sorted input length lose nothing (exchanging tasks into sorted order keeps all sizes and
raises no batch maximum), so for every speculation length the optimum is a shortest path over prefixes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.algorithm_1 import backtrack
from specopt.solvers.serving_latency.bound import additive_batches
from specopt.solvers.serving_latency.method import Found, ServingLatencyMethod
from specopt.solvers.serving_latency.prepare import Prepared


@dataclass(frozen=True)
class Exact(ServingLatencyMethod):
    """A shortest path over contiguous batches, for every speculation length."""

    name: ClassVar[str] = "exact"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "own; the contiguity of batches makes problem (24) without overlap a shortest path"
    guarantee: ClassVar[str] = "optimal"
    complexity: ClassVar[str] = "O(l_max K^2)"
    mechanisms: ClassVar[tuple[str, ...]] = ("sequential", "autoregressive")
    output_lengths: ClassVar[tuple[str, ...]] = ("conservative",)

    def find(self, prepared: Prepared, budget: Budget) -> Found:
        """Solve the shortest path of every speculation length."""
        best, plan = np.inf, None
        for length in prepared.lengths:
            boundary, seconds = additive_batches(prepared, length, 1.0, 1.0, budget)
            if seconds < best:
                best = seconds
                plan = prepared.plan(backtrack(boundary), length)
                budget.offer(plan)
        assert plan is not None, "every task fits alone, so one-task batches are feasible"
        return Found(plan, best + prepared.communication_seconds)
