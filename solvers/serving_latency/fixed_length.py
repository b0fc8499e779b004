"""Fixed speculation length: Algorithm 1's batches at one l (paper 1, Sec. IV-A, benchmark 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.fields import PositiveInt
from specopt.models.serving_latency import ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Condition, Outcome
from specopt.solvers.serving_latency.algorithm_1 import plan_without_maximum
from specopt.solvers.serving_latency.contiguous import algorithm_1_batches
from specopt.solvers.serving_latency.method import PIPELINED, ServingLatencyMethod, best_of_mechanisms, certify
from specopt.solvers.serving_latency.prepare import Prepared


@dataclass(frozen=True)
class FixedLength(ServingLatencyMethod):
    """Algorithm 1's batches at one speculation length.

    Parameters
    ----------
    length
        Draft tokens per step; l_max if that is smaller.
    """

    length: PositiveInt = 7

    name: ClassVar[str] = "fixed-length"
    source: ClassVar[str] = "paper 1, Sec. IV-A, benchmark 3"
    guarantee: ClassVar[str] = "none"
    complexity: ClassVar[str] = "O(K^2)"
    takes: ClassVar[tuple[Condition, ...]] = (PIPELINED,)

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Run Algorithm 1 for one speculation length."""

        def solve(prepared: Prepared) -> Outcome:
            length = min(self.length, problem.max_speculation_length or 1)
            batches, _ = algorithm_1_batches(prepared, length, budget)
            plan = plan_without_maximum(prepared, length) if batches is None else prepared.plan(batches, length)
            return certify(prepared, plan, budget)

        return best_of_mechanisms(problem, budget, solve)
