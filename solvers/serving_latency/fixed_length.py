"""Algorithm 1's batches at one speculation length."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.fields import PositiveInt
from specopt.models.serving_latency.problem import ServingLatencyPlan
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.algorithm_1 import Algorithm1, best_plan
from specopt.solvers.serving_latency.prepare import Prepared


@dataclass(frozen=True)
class FixedLength(Algorithm1):
    """Algorithm 1's batches at one speculation length.

    Parameters
    ----------
    length
        Draft tokens per step; l_max if that is smaller.
    """

    length: PositiveInt = 7

    name = "fixed-length"
    source = "paper 1, Sec. IV-A, benchmark 3"
    guarantee = "none"
    complexity = "O(K^2)"

    def plan(self, prepared: Prepared, budget: Budget) -> ServingLatencyPlan:
        """Run Algorithm 1 for one speculation length."""
        length = min(self.length, prepared.problem.max_speculation_length or 1)
        return best_plan(prepared, budget, prepared.shares, [length])
