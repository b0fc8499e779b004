"""Methods for `verification-batch` problems (paper 2)."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.verification_batch.problem import (
    VerificationBatchPlan,
    VerificationBatchProblem,
)
from specopt.solvers.auto import Auto
from specopt.solvers.method import Method
from specopt.solvers.verification_batch.baselines import BASELINES
from specopt.solvers.verification_batch.brute_force import BruteForceBatch
from specopt.solvers.verification_batch.method import plan_of
from specopt.solvers.verification_batch.milp import MilpBatch
from specopt.solvers.verification_batch.pareto import Pareto
from specopt.solvers.verification_batch.prepare import Prepared
from specopt.solvers.verification_batch.sweep import Sweep
from specopt.solvers.verification_batch.threshold import Threshold

SWEPT = range(3000, 10_000)
"""Numbers of requests for which `sweep` finds a good plan much earlier than `threshold` does."""


@dataclass(frozen=True)
class AutoBatch(Auto):
    """Run the `threshold` method, preceded by the fast `sweep` method for problems of intermediate
    size.
    """

    solves = VerificationBatchProblem
    order = (Sweep, Threshold)

    def order_for(self, problem: VerificationBatchProblem) -> tuple[type[Method], ...]:
        """Return the methods to run. `sweep` is included only for the problem sizes in `SWEPT`,
        because it is not needed for fewer requests and is itself slow for more requests.
        """
        return self.order if problem.requests in SWEPT else self.order[1:]

    def repaired(
        self, problem: VerificationBatchProblem, plan: VerificationBatchPlan
    ) -> VerificationBatchPlan:
        """Adapt a plan by keeping the requests that still exist and fit, in their original
        order.
        """
        prepared = Prepared(problem)
        able = [int(i) for i in plan.batch if i in set(prepared.items.tolist())]
        return plan_of(prepared.in_order(able, skip=True))


METHODS = (
    AutoBatch,
    Threshold,
    Sweep,
    Pareto,
    *BASELINES,
    MilpBatch,
    BruteForceBatch,
)
