"""Uniform bandwidth: Algorithm 1's plan with the band divided evenly (paper 1, Sec. IV-C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.serving_latency import ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Condition, Outcome
from specopt.solvers.serving_latency.algorithm_1 import best_plan
from specopt.solvers.serving_latency.method import PIPELINED, ServingLatencyMethod, best_of_mechanisms, certify
from specopt.solvers.serving_latency.prepare import Prepared


@dataclass(frozen=True)
class UniformBandwidth(ServingLatencyMethod):
    """Algorithm 1's batches and speculation length, the band divided evenly."""

    name: ClassVar[str] = "uniform-bandwidth"
    source: ClassVar[str] = "paper 1, Sec. IV-C"
    guarantee: ClassVar[str] = "none"
    complexity: ClassVar[str] = "O(l_max K^2)"
    takes: ClassVar[tuple[Condition, ...]] = (PIPELINED,)

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Take Algorithm 1's batches and speculation length with shares 1/K."""

        def solve(prepared: Prepared) -> Outcome:
            return certify(prepared, best_plan(prepared, budget, np.full(prepared.tasks, 1.0 / prepared.tasks)), budget)

        return best_of_mechanisms(problem, budget, solve)
