"""The requests of a verification-batch problem with their costs, as arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.models.verification_batch.problem import (
    VerificationBatchPlan,
    VerificationBatchProblem,
)
from specopt.solvers.budget import Budget
from specopt.solvers.room import room

LARGE = 2000
"""Minimum number of requests for which compiled calls are monitored.

With so many requests, a single call may exceed the time limit.
"""

PARTS = 8
"""Number of smaller blocks into which a block of thresholds is divided."""

PASSES = 6, 30
"""Numbers of bisection steps on the mixture of time and memory prices.

The first number applies to the bound for a block of thresholds, and the second number applies to
the bound for a single threshold.
"""

SURE, MOST = 0, 1
"""Indices of the tighter and the looser limits on time and memory.

Batches within the tighter limits are certainly feasible. Batches that exceed a looser limit are
certainly infeasible.
"""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A problem's requests with their costs, and the feasibility test used by the methods.

    The total time and the total memory of a batch are limited, and the limits include the judge's
    tolerance. Because sums have rounding errors, each limit has a tighter and a looser value. A
    batch that exceeds a looser limit is infeasible in any order of summation. A batch within the
    tighter limits is feasible. For batches in between, feasibility depends on rounding errors, and
    the judge decides. Bounds and exact searches use the looser limits, and heuristics use the
    tighter limits.
    """

    problem: VerificationBatchProblem

    @cached_property
    def seconds(self) -> Floats:
        """Weight w_i of every request, in seconds."""
        return self.problem.estimator.weights(self.problem.new_tokens, self.problem.cached_tokens)

    @cached_property
    def rooms(self) -> Floats:
        """Tighter and looser limit on the total weight of a batch that contains request i, in
        seconds.

        The limit is d_i - t_k - c, with the tolerance. The array has shape (2, n).
        """
        problem = self.problem
        digit = np.spacing(np.abs(problem.deadline_seconds)) + np.spacing(abs(problem.now_seconds))
        with np.errstate(over="ignore"):
            left = problem.deadline_seconds - problem.now_seconds
            found = room(left, digit, self._digits[:, None]) - problem.estimator.overhead_seconds
        return np.asarray(found)

    @cached_property
    def memory_rooms(self) -> list[float]:
        """The tighter and the looser limit on the memory of a batch, in bytes."""
        found: list[float] = room(self.problem.memory_bytes, digits=self._digits).tolist()
        return found

    @property
    def _digits(self) -> Floats:
        """Range of the rounding error of a sum over a batch, in multiples of machine epsilon.

        The two entries are the maximum errors downwards and upwards.
        """
        return (self.problem.requests + 8.0) * np.array([-1.0, 1.0])

    @cached_property
    def hopeless(self) -> list[int]:
        """Indices of the requests that no feasible batch contains."""
        late = self.seconds > self.rooms
        large = self.problem.request_memory_bytes > np.array(self.memory_rooms)[:, None]
        doubtful, hopeless = late | large
        return [i for i in np.flatnonzero(doubtful).tolist() if hopeless[i] or not self.admits([i])]

    def without_hopeless(self, order: Iterable[int]) -> list[int]:
        """Return the requests in `order` that are not hopeless, in the same order."""
        hopeless = set(self.hopeless)
        return [i for i in order if i not in hopeless]

    @cached_property
    def items(self) -> Ints:
        """Indices of the requests that have a positive value and are not hopeless.

        They are sorted by decreasing deadline, and ties are broken by index.
        """
        useful = self.problem.expected_tokens > 0
        useful[self.hopeless] = False
        found = np.flatnonzero(useful)
        return found[np.argsort(-self.rooms[MOST][found], kind="stable")]

    @cached_property
    def columns(self) -> tuple[Floats, Floats, Floats, Floats, float]:
        """Data of the items with the looser limits, which bounds and exact searches use.

        The tuple contains one array each for the values, the weights in seconds, the memory, and
        the time limits of the items. The last entry is the memory limit.
        """
        return self.columns_within(MOST)

    def columns_within(self, which: int) -> tuple[Floats, Floats, Floats, Floats, float]:
        """Return the data in `columns` with tighter or looser limits.

        `which` is `SURE` for the tighter limits or `MOST` for the looser limits.
        """
        problem, items = self.problem, self.items
        return (
            problem.expected_tokens[items],
            self.seconds[items],
            problem.request_memory_bytes[items],
            self.rooms[which][items],
            self.memory_rooms[which],
        )

    @cached_property
    def ends(self) -> Ints:
        """For each distinct time limit, the number of items whose time limit is at least as large.

        The entries are in order of decreasing time limit.
        """
        rooms = self.columns[3]
        return np.flatnonzero(np.append(rooms[1:] != rooms[:-1], True)[: len(rooms)]) + 1

    def admits(self, batch: Sequence[int]) -> bool:
        """Return whether the judge accepts a batch.

        The judge is called only if rounding errors may affect the result.
        """
        members = list(batch)
        if not members:
            return True
        seconds = math.fsum(self.seconds[members])
        memory = math.fsum(self.problem.request_memory_bytes[members])
        less, more = (
            seconds <= float(rooms[members].min()) and memory <= memory_room
            for rooms, memory_room in zip(self.rooms, self.memory_rooms, strict=True)
        )
        return less or (
            more and not self.problem.violations(VerificationBatchPlan(batch=np.array(members)))
        )

    def in_order(self, order: Sequence[int], skip: bool) -> list[int]:
        """Add requests to a batch in the order given by `order`, and return the batch.

        A request that does not fit is skipped if `skip` is true. Otherwise, it ends the batch.
        """
        rows = np.array(order, np.int64)
        columns = self.seconds, self.problem.request_memory_bytes, self.rooms[SURE]
        lists = [column[rows].tolist() for column in columns]
        batch: list[int] = []
        t, used, least = 0.0, 0.0, math.inf
        for i, seconds, memory, limit in zip(order, *lists, strict=True):
            more_t, more_used, left = t + seconds, used + memory, min(least, limit)
            if more_used <= self.memory_rooms[SURE] and more_t <= left:
                batch.append(i)
                t, used, least = more_t, more_used, left
            elif not skip:
                break
        return batch

    def bounds(self, budget: Budget, enough: float, levels: float = math.inf) -> Floats:
        """Return an upper bound for every threshold, with its prices of time and memory.

        The budget's bound is improved as well. The bounds are tight only above `enough`. Initially,
        neighbouring thresholds share a bound. A shared bound above `enough` is refined level by
        level, until each threshold has its own bound or the number of levels reaches `levels`.
        """
        kernels = budget.load("verification_batch.bound")
        items, count = kernels.Items(*self.columns), len(self.ends)
        starts = np.concatenate((np.zeros(1, np.int64), self.ends))
        found = np.zeros((3, count))
        size = 1
        while size * PARTS**2 <= count:
            size *= PARTS
        first = np.arange(0, count, size)
        while len(first):
            last = np.minimum(first + size, count)
            passes = PASSES[size == 1]
            own = np.empty((3, len(first)))
            self.call(
                budget,
                kernels.bound_blocks,
                starts[first],
                starts[last],
                items,
                enough,
                passes,
                *own,
            )
            every = (first[:, None] + np.arange(size)).ravel()
            inside = every < count
            found[:, every[inside]] = np.repeat(own, size, axis=1)[:, inside]
            assert budget.objective is not None
            budget.improve_bound(max(budget.objective, float(found[0].max())))
            levels -= 1
            if size == 1 or levels == 0:
                break
            size //= PARTS
            first = (first[own[0] > enough, None] + size * np.arange(PARTS)).ravel()
            first = first[first < count]
        return found

    def call(
        self, budget: Budget, kernel: Callable[..., T], *arguments: Any, partial: bool = False
    ) -> T:
        """Call a kernel and return its result.

        If there are many requests, the call respects the time limit.
        """
        if len(self.items) < LARGE:
            return kernel(*arguments, np.zeros(1, np.uint8))
        return budget.call(kernel, *arguments, partial=partial)
