"""What the methods of verification batching share: items, a quick plan, and the bound of every threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.models.verification_batch import VerificationBatchPlan, VerificationBatchProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Method, Outcome

SLACK = 1e-11
"""Relative: a bound that exceeds a plan by no more proves it optimal."""

LARGE = 2000
"""Requests from which on one compiled call may outlast a time limit: it is then watched."""

T = TypeVar("T")


@dataclass(frozen=True)
class VerificationBatchMethod(Method):
    """Base of the methods for `verification-batch`.

    A request that cannot be served in time even alone, now + c + w_i > d_i, or that needs more memory than there is,
    is hopeless: no feasible batch holds it. All methods leave these out, and the stats list them.
    """

    solves: ClassVar[type[VerificationBatchProblem]] = VerificationBatchProblem
    size_unit: ClassVar[str] = "requests"


@dataclass(frozen=True, eq=False)
class Pending:
    """A problem's requests with what they cost, and feasibility as the methods test it."""

    problem: VerificationBatchProblem

    @cached_property
    def seconds(self) -> Floats:
        """w_i of every request."""
        return self.problem.estimator.weights(self.problem.new_tokens, self.problem.cached_tokens)

    @cached_property
    def hopeless(self) -> list[int]:
        """Requests that no feasible batch holds."""
        problem = self.problem
        ends = problem.now_seconds + (problem.estimator.overhead_seconds + self.seconds)
        late = ends > problem.deadline_seconds
        large = problem.request_memory_bytes > problem.memory_bytes
        return [int(i) for i in np.flatnonzero(late | large)]

    @cached_property
    def items(self) -> Ints:
        """Requests that are worth something and not hopeless, by decreasing deadline, ties by index."""
        useful = self.problem.expected_tokens > 0
        useful[self.hopeless] = False
        found = np.flatnonzero(useful)
        return found[np.argsort(-self.problem.deadline_seconds[found], kind="stable")]

    @cached_property
    def columns(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Values, seconds, memory and deadlines of the items."""
        problem, items = self.problem, self.items
        return (
            problem.expected_tokens[items],
            self.seconds[items],
            problem.request_memory_bytes[items],
            problem.deadline_seconds[items],
        )

    @property
    def clock(self) -> tuple[float, float, float]:
        """Start of the batch, its constant overhead, and the memory."""
        return self.problem.now_seconds, self.problem.estimator.overhead_seconds, self.problem.memory_bytes

    @cached_property
    def ends(self) -> Ints:
        """For each distinct deadline, the end of the prefix of items that are due no earlier."""
        deadlines = self.columns[3]
        found: Ints = np.flatnonzero(np.append(deadlines[1:] != deadlines[:-1], True)) + 1 if len(deadlines) else (
            np.empty(0, dtype=np.int64)
        )  # fmt: skip
        return found

    def admits(self, batch: Sequence[int]) -> bool:
        """Tell whether a batch is feasible, without any slack."""
        if not batch:
            return True
        members = list(batch)
        problem = self.problem
        seconds = problem.estimator.overhead_seconds + math.fsum(self.seconds[members])
        memory = math.fsum(problem.request_memory_bytes[members])
        earliest = float(problem.deadline_seconds[members].min())
        return memory <= problem.memory_bytes and problem.now_seconds + seconds <= earliest

    def in_order(self, order: Iterable[int], skip: bool) -> list[int]:
        """Return the batch that takes requests in an order; at one that does not fit it stops, or skips it."""
        problem = self.problem
        now, c, M = self.clock
        batch: list[int] = []
        t, memory, earliest = 0.0, 0.0, math.inf
        for i in order:
            more_t, more_memory = t + float(self.seconds[i]), memory + float(problem.request_memory_bytes[i])
            due = min(earliest, float(problem.deadline_seconds[i]))
            if more_memory <= M and now + (c + more_t) <= due:
                batch.append(int(i))
                t, memory, earliest = more_t, more_memory, due
            elif not skip:
                break
        return batch

    def bounds(self, budget: Budget, enough: float) -> tuple[Floats, Floats, Floats]:
        """Return a bound on every threshold and its prices of time and memory; tight only above `enough`."""
        kernels = budget.load("verification_batch")
        count = len(self.ends)
        found = np.empty(count), np.empty(count), np.empty(count)
        self.call(budget, kernels.bound_thresholds, *self.columns, self.ends, *self.clock, enough, *found)
        return found

    def call(self, budget: Budget, kernel: Callable[..., T], *arguments: Any, partial: bool = False) -> T:
        """Return what a kernel gives; where there are many requests, without overrunning the time limit."""
        if len(self.items) < LARGE:
            return kernel(*arguments, np.zeros(1, dtype=np.uint8))
        return budget.call(kernel, *arguments, partial=partial)


def plan_of(batch: Iterable[int]) -> VerificationBatchPlan:
    """Return the plan of a batch, its requests in the order of their indices."""
    return VerificationBatchPlan(batch=np.array(sorted(batch), dtype=np.int64))


def prepare(problem: VerificationBatchProblem, budget: Budget) -> Pending:
    """Return the requests, after offering a plan that is quick to construct and a bound that needs no search.

    The plan takes requests by decreasing value per second; the first fits alone, so it is empty only if nothing fits.
    """
    pending = Pending(problem)
    values, seconds, _, _ = pending.columns
    with np.errstate(divide="ignore", over="ignore"):
        order = pending.items[np.argsort(-(values / seconds), kind="stable")]
    budget.offer(plan_of(pending.in_order(order.tolist(), skip=True)))
    budget.improve_bound(math.fsum(values))
    budget.check()
    return pending


def certify(pending: Pending, batch: Sequence[int], budget: Budget, **stats: Any) -> Outcome:
    """Return the outcome of a heuristic's batch, with the largest bound of all thresholds."""
    plan = plan_of(batch)
    objective = budget.offer(plan)
    budget.check()
    bound, _, _ = pending.bounds(budget, objective)
    limit = max(objective, float(bound.max(initial=0.0)))
    budget.improve_bound(limit)
    return Outcome(plan=plan, bound=budget.bound, stats={**stats, "hopeless": pending.hopeless})


def enough(objective: float, gap: float) -> float:
    """Return the bound at which a plan counts as proven."""
    return objective * (1.0 + max(SLACK, gap))
