"""Algorithm 1's batches and speculation length, the band divided evenly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.serving_latency.problem import ServingLatencyPlan
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.algorithm_1 import Algorithm1, best_plan
from specopt.solvers.serving_latency.prepare import Prepared


@dataclass(frozen=True)
class UniformBandwidth(Algorithm1):
    """Algorithm 1's batches and speculation length, the band divided evenly."""

    name = "uniform-bandwidth"
    source = "paper 1, Sec. IV-C"
    guarantee = "none"
    complexity = "O(l_max K^2)"

    def plan(self, prepared: Prepared, budget: Budget) -> ServingLatencyPlan:
        """Take Algorithm 1's batches and speculation length with shares 1/K."""
        return best_plan(prepared, budget, np.full(prepared.tasks, 1.0 / prepared.tasks))
