"""Methods for `serving-latency` problems (paper 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.auto import Auto
from specopt.solvers.method import Method
from specopt.solvers.serving_latency.algorithm_1 import Algorithm1
from specopt.solvers.serving_latency.baselines import BASELINES, HeuristicBatching
from specopt.solvers.serving_latency.brute_force import BruteForce
from specopt.solvers.serving_latency.exact import Exact
from specopt.solvers.serving_latency.length_aware import LengthAware
from specopt.solvers.serving_latency.milp import Milp
from specopt.solvers.serving_latency.prepare import prepare
from specopt.solvers.serving_latency.stand_in import StandIn

FEW_TASKS = 6
"""Largest number of tasks for which enumeration is faster than computing the bounds for known
output lengths.
"""


@dataclass(frozen=True)
class AutoServing(Auto):
    """Default method for `serving-latency` problems, which selects a method according to the output
    lengths.

    For conservative output lengths, it runs the exact search. For known output lengths, it runs
    local search and column generation, or enumeration if there are few tasks. For predicted output
    lengths, or if each task has a separate acceptance rate, it runs the method `stand-in`.
    """

    solves = ServingLatencyProblem
    order = (Exact, LengthAware, BruteForce)
    instead = (StandIn, Algorithm1, HeuristicBatching)

    def order_for(self, problem: ServingLatencyProblem) -> tuple[type[Method], ...]:
        """Return the methods in the order in which they are tried. For a few tasks with known
        output lengths, enumeration comes first.
        """
        if problem.tasks > FEW_TASKS or problem.output_lengths == "conservative":
            return self.order
        return BruteForce, Exact, LengthAware

    def repaired(
        self, problem: ServingLatencyProblem, plan: ServingLatencyPlan
    ) -> ServingLatencyPlan:
        """Adapt a plan to a problem whose tasks have changed. Tasks that no longer exist are
        removed from their batches, and each new task is put into a separate batch.
        """
        prepared = prepare(problem, plan.mechanism)
        place = np.argsort(prepared.order)
        batches = [[int(place[k]) for k in batch if k < problem.tasks] for batch in plan.batches]
        batches += [[int(place[k])] for k in range(sum(map(len, plan.batches)), problem.tasks)]
        length = min(max(plan.speculation_length, prepared.lengths[0]), prepared.lengths[-1])
        return prepared.plan([batch for batch in batches if batch], length)


METHODS = (
    AutoServing,
    Exact,
    LengthAware,
    Algorithm1,
    BruteForce,
    *BASELINES,
    Milp,
    StandIn,
)
