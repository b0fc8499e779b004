"""What the methods of verification batching share: a plan to start from, and the certificate."""

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
from specopt.solvers.verification_batch.prepare import Prepared

SLACK = 1e-11
"""Relative: a bound that exceeds a plan by no more proves it optimal."""


@dataclass(frozen=True)
class VerificationBatchMethod(Method):
    """Base of the methods for `verification-batch`.

    A request that cannot be served in time even alone, c + w_i > d_i - now, or that needs more
    memory than there is, is hopeless: no feasible batch holds it. All methods leave these out, and
    the stats list them.
    """

    solves = VerificationBatchProblem
    size_unit = "requests"

    def size_of(self, problem: VerificationBatchProblem) -> float:
        """Return the number of requests."""
        return problem.requests

    def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
        """Offer a first plan, and search."""
        prepared = Prepared(problem)
        offer_first_plan(prepared, budget)
        return self.search(prepared, budget)

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Solve within a budget that has a first plan."""
        raise NotImplementedError


def plan_of(batch: Iterable[int]) -> VerificationBatchPlan:
    """Return the plan of a batch, its requests in the order of their indices."""
    return VerificationBatchPlan(batch=np.array(sorted(batch), np.int64))


def offer_first_plan(prepared: Prepared, budget: Budget) -> None:
    """Offer a plan that is quick to construct, and a bound that needs no search.

    The plan takes requests by decreasing value per second; the first fits alone, so it is empty
    only if nothing fits.
    """
    values, seconds, *_ = prepared.columns
    with np.errstate(divide="ignore", over="ignore"):
        order = prepared.items[np.argsort(-(values / seconds), kind="stable")]
    budget.offer(plan_of(prepared.in_order(order.tolist(), skip=True)))
    budget.improve_bound(math.fsum(values))
    budget.check()


def certify(prepared: Prepared, batch: Sequence[int], budget: Budget, **stats: Any) -> Outcome:
    """Return the outcome of a heuristic's batch, with the largest bound of all thresholds."""
    plan = plan_of(batch)
    objective = budget.offer(plan)
    budget.check()
    bound, _, _ = prepared.bounds(budget, objective)
    limit = max(objective, float(bound.max(initial=0.0)))
    budget.improve_bound(limit)
    return Outcome(plan=plan, bound=budget.bound, stats={**stats, "hopeless": prepared.hopeless})


def enough(objective: float, gap: float) -> float:
    """Return the bound at which a plan counts as proven."""
    return objective * (1.0 + max(SLACK, gap))
