"""Uniform bandwidth: Algorithm 1's plan with the band divided evenly (paper 1, Sec. IV-C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.algorithm_1 import best_plan
from specopt.solvers.serving_latency.bound import lower_bound
from specopt.solvers.serving_latency.method import Found, PerMechanism
from specopt.solvers.serving_latency.prepare import Prepared


@dataclass(frozen=True)
class UniformBandwidth(PerMechanism):
    """Algorithm 1's batches and speculation length, the band divided evenly."""

    name: ClassVar[str] = "uniform-bandwidth"
    source: ClassVar[str] = "paper 1, Sec. IV-C"
    guarantee: ClassVar[str] = "none"
    complexity: ClassVar[str] = "O(l_max K^2)"
    mechanisms: ClassVar[tuple[str, ...]] = ("pipelined",)

    def find(self, prepared: Prepared, budget: Budget) -> Found:
        """Take Algorithm 1's batches and speculation length with shares 1/K."""
        plan = best_plan(prepared, budget, np.full(prepared.tasks, 1.0 / prepared.tasks))
        return Found(plan, lower_bound(prepared, budget))
