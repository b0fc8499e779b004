"""Code shared by the methods for verification batching: the initial plan and the upper bound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.verification_batch.problem import (
    VerificationBatchPlan,
    VerificationBatchProblem,
)
from specopt.solvers.budget import Budget
from specopt.solvers.method import Method, Outcome
from specopt.solvers.verification_batch.prepare import SURE, Prepared

SLACK = 1e-11
"""Relative tolerance of optimality.

A plan counts as optimal if the bound exceeds the plan's value by at most this fraction.
"""

PLAIN = 32
"""Approximate maximum number of deadlines for which an initial plan is tried.

They are evenly spaced among the requests' deadlines.
"""

SPACING = 12
"""Minimum number of requests from one of these deadlines to the next.

With a smaller number, the initial plan of a small problem is better and takes longer.
"""


@dataclass(frozen=True)
class VerificationBatchMethod(Method):
    """Base class of the methods for `verification-batch` problems.

    A request is hopeless if it would be late even in a batch of its own (c + w_i > d_i - now), or
    if it needs more memory than is available. No feasible batch contains a hopeless request. All
    methods list such requests in the statistics, and all except `algorithm-1` drop them.
    """

    solves = VerificationBatchProblem
    size_unit = "requests"

    def size_of(self, problem: VerificationBatchProblem) -> float:
        """Return the number of requests."""
        return problem.requests

    def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
        """Record an initial plan in the budget, and then search for better plans."""
        prepared = Prepared(problem)
        offer_first_plan(prepared, budget)
        found = self.search(prepared, budget)
        found.stats["hopeless"] = prepared.hopeless
        return found

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Search for a better plan, starting from the plan already recorded in the budget."""
        raise NotImplementedError


def plan_of(batch: Iterable[int]) -> VerificationBatchPlan:
    """Return the plan for a batch, in which the requests are sorted by index."""
    return VerificationBatchPlan(batch=np.array(sorted(batch), np.int64))


def plain_plan(prepared: Prepared) -> VerificationBatchPlan:
    """Return the best of several plans that are quick to construct without compiled code.

    Most plans add requests in order of decreasing value per second. The first plan considers all
    requests and skips requests that do not fit. Other plans consider only the requests whose
    deadline is no earlier than some deadline, and stop at the first request that does not fit. One
    more plan contains only the most valuable request. The result is empty only if nothing fits.
    """
    values, seconds, memory, rooms, space = prepared.columns_within(SURE)
    with np.errstate(divide="ignore", over="ignore"):
        order = np.argsort(-(values / seconds), kind="stable")
    skipping = prepared.in_order(prepared.items[order].tolist(), skip=True)
    best, most = skipping, math.fsum(prepared.problem.expected_tokens[skipping])
    if values.max(initial=0.0) > most:
        best, most = [int(prepared.items[values.argmax()])], float(values.max())
    step = max(SPACING, len(order) // PLAIN)
    for end in sorted({*range(step, len(order), step), len(order)} - {0}):
        inside = order[order < end]
        in_time = seconds[inside].cumsum().searchsorted(rooms[end - 1], "right")
        inside = inside[: min(in_time, memory[inside].cumsum().searchsorted(space, "right"))]
        if (worth := math.fsum(values[inside])) > most:
            best, most = prepared.items[inside].tolist(), worth
    return plan_of(best)


def offer_first_plan(prepared: Prepared, budget: Budget) -> None:
    """Record a plan that is quick to construct, and an upper bound that needs no search."""
    budget.offer(plain_plan(prepared))
    budget.improve_bound(math.fsum(prepared.columns[0]))
    budget.check()


def certify(prepared: Prepared, batch: Sequence[int], budget: Budget, **stats: Any) -> Outcome:
    """Return the outcome for the batch that a heuristic found.

    The upper bound in the outcome is the largest of the bounds for all thresholds.
    """
    plan = plan_of(batch)
    objective = budget.offer(plan)
    budget.check()
    prepared.bounds(budget, objective)
    return Outcome(plan=plan, bound=budget.bound, stats=stats)


def enough(budget: Budget) -> float:
    """Return the largest upper bound that still proves the incumbent optimal.

    The tolerance is `SLACK` or the requested gap, whichever is larger.
    """
    assert budget.objective is not None
    return budget.objective * (1.0 + max(SLACK, budget.gap))
