"""Methods for `verification-batch` (paper 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.verification_batch import VerificationBatchProblem
from specopt.solvers.auto import Auto
from specopt.solvers.method import Method
from specopt.solvers.verification_batch.algorithm_1 import Algorithm1
from specopt.solvers.verification_batch.algorithm_1_drop import Algorithm1Drop
from specopt.solvers.verification_batch.brute_force import BruteForceBatch
from specopt.solvers.verification_batch.edf import EarliestDeadlineFirst
from specopt.solvers.verification_batch.fcfs import FirstComeFirstServed
from specopt.solvers.verification_batch.milp import MilpBatch
from specopt.solvers.verification_batch.pareto import Pareto
from specopt.solvers.verification_batch.sweep import Sweep
from specopt.solvers.verification_batch.threshold import Threshold

SWEPT = range(3000, 10_000)
"""Requests among which the sweep's plan comes well before the first good one of `threshold`."""


@dataclass(frozen=True)
class AutoBatch(Auto):
    """Thresholds, each bounded and settled; among many requests behind a sweep, whose plan is there at once."""

    solves: ClassVar[type[VerificationBatchProblem]] = VerificationBatchProblem
    order: ClassVar[tuple[type[Method], ...]] = (Sweep, Threshold)

    def order_for(self, problem: VerificationBatchProblem) -> tuple[type[Method], ...]:
        """Return the members, without the sweep among few requests, and among so many that it takes long itself."""
        return self.order if problem.requests in SWEPT else self.order[1:]


METHODS: tuple[type[Method], ...] = (
    AutoBatch,
    Threshold,
    Sweep,
    Pareto,
    Algorithm1,
    Algorithm1Drop,
    FirstComeFirstServed,
    EarliestDeadlineFirst,
    MilpBatch,
    BruteForceBatch,
)
