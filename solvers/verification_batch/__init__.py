"""Solution methods for `verification-batch` problems (paper 2)."""

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
"""Numbers of requests for which `sweep` finds a good plan much earlier than `threshold`."""


@dataclass(frozen=True)
class AutoBatch(Auto):
    """The default method. It runs `threshold`.

    For problems of intermediate size, the fast method `sweep` runs first.
    """

    solves = VerificationBatchProblem
    order = (Sweep, Threshold)

    def order_for(self, problem: VerificationBatchProblem) -> tuple[type[Method], ...]:
        """Return the methods to run for a problem.

        `sweep` is included only if the number of requests is in `SWEPT`. With fewer requests it is
        not needed, and with more requests it is itself slow.
        """
        return self.order if problem.requests in SWEPT else self.order[1:]

    def repaired(
        self, problem: VerificationBatchProblem, plan: VerificationBatchPlan
    ) -> VerificationBatchPlan:
        """Return a plan for this problem with the requests of `plan` that still exist and fit.

        The requests keep their original order.
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
