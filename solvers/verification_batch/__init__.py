"""Methods for `verification-batch` (paper 2)."""

from __future__ import annotations

from specopt.solvers.method import Method
from specopt.solvers.verification_batch.algorithm_1 import Algorithm1
from specopt.solvers.verification_batch.algorithm_1_drop import Algorithm1Drop
from specopt.solvers.verification_batch.auto import AutoBatch
from specopt.solvers.verification_batch.brute_force import BruteForceBatch
from specopt.solvers.verification_batch.edf import EarliestDeadlineFirst
from specopt.solvers.verification_batch.fcfs import FirstComeFirstServed
from specopt.solvers.verification_batch.milp import MilpBatch
from specopt.solvers.verification_batch.pareto import Pareto
from specopt.solvers.verification_batch.sweep import Sweep
from specopt.solvers.verification_batch.threshold import Threshold

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
