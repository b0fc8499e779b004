"""Rebatched plans by a scheduler that is played ahead of time, at every speculation length, and at each step's best.

See `specopt.solvers.serving_latency.rebatched` for the scheduler. Bandwidth: the optimal shares of a common start
(Eq. 27); of tasks that arrive one by one, those shares of all that may upload at one time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.models.rebatched_serving import Phase
from specopt.models.serving_latency import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Condition, Outcome
from specopt.solvers.serving_latency.method import REBATCHED, ServingLatencyMethod, prepare_all
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.rebatched import Former, Scheduler
from specopt.solvers.serving_latency.served_bound import served_bound

_MANY = 300
"""Tasks above which events choose among the speculation lengths that were played alone."""


@dataclass(frozen=True)
class Rebatching(ServingLatencyMethod):
    """Batches formed anew wherever a task finishes or joins; the best of all speculation lengths."""

    name: ClassVar[str] = "rebatching"
    source: ClassVar[str] = "own; shortest paths and Johnson's rule at every event"
    guarantee: ClassVar[str] = "a lower bound; the gap is certified, not closed"
    complexity: ClassVar[str] = "O(l_max E K B), E events, B tasks in the largest batch"
    serves: ClassVar[tuple[Condition, ...]] = (REBATCHED,)

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Play the scheduler under every mechanism."""
        able = prepare_all(problem)
        for prepared in able:
            budget.offer(_one_by_one(prepared))
        for prepared in able:
            former = Former(prepared, budget)
            shares = _shares(prepared)
            for outputs in _planned_outputs(problem):
                self._play(Scheduler(former, outputs, shares), budget)
        return Outcome(plan=budget.incumbent, bound=min(served_bound(prepared, budget) for prepared in able))

    def _play(self, scheduler: Scheduler, budget: Budget) -> None:
        """Offer the plans of every fixed speculation length, and of the one that chooses at every event."""
        problem, lengths = scheduler.problem, scheduler.prepared.lengths
        seconds: list[float] = []
        for length in lengths:
            plan = scheduler.plan(range(length, length + 1), budget)
            if not problem.violations(plan):
                seconds.append(budget.offer(plan))
            if len(seconds) > 2 and seconds[-1] > seconds[-2] > seconds[-3]:
                break
        if len(lengths) > 1:
            few = range(lengths[0], lengths[0] + len(seconds)) if problem.tasks > _MANY and seconds else lengths
            plan = scheduler.plan(few, budget)
            if not problem.violations(plan):
                budget.offer(plan)


def _planned_outputs(problem: ServingLatencyProblem) -> list[Ints]:
    """Return the output lengths to plan with: as they count, or of samples each task's largest and its median."""
    if problem.output_lengths != "predicted":
        return [problem.planned_output_tokens]
    rows = np.array(problem.scenarios)
    return [rows.max(axis=0), np.ceil(np.median(rows, axis=0)).astype(np.int64)]


def _shares(prepared: Prepared) -> Floats:
    """Return the optimal shares (Eq. 27); of tasks that arrive apart, as many times these as never exceeds the band."""
    problem = prepared.problem
    if problem.arrival_seconds is None:
        return prepared.shares
    low, high = 1.0, float(1.0 / prepared.shares.min())
    for _ in range(40):
        middle = float(np.sqrt(low * high))
        shares = np.minimum(1.0, middle * prepared.shares)
        low, high = (middle, high) if problem.most_at_once(prepared.mechanism, shares) <= 1.0 else (low, middle)
    return np.minimum(1.0, low * prepared.shares)


def _one_by_one(prepared: Prepared) -> ServingLatencyPlan:
    """Return the plan of one task per batch, as fits whenever there is a plan."""
    singles = tuple((task,) for task in range(prepared.tasks))
    return prepared.phased([Phase(first_step=1, batches=singles)], prepared.lengths[0])
