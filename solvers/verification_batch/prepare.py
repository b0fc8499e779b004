"""The data of methods and kernels of verification batching: requests with their costs."""

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
"""Requests from which on one compiled call may outlast a time limit: it is then watched."""

PARTS = 8
"""Blocks into which a block of thresholds is divided."""

PASSES = 6, 30
"""Bisections of the mix of time and memory for the bound of a block, and of a single threshold."""

SURE, MOST = 0, 1
"""Indices of two rooms: batches that fit the first are feasible, those that do not fit the
second are not.
"""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A problem's requests with their costs, and feasibility as the methods decide it.

    Deadlines and memory are rooms, limits on the sum of a batch's weights, the judge's tolerance
    included. A batch that does not fit the larger of two rooms is infeasible, whatever the order it
    is summed in: bounds and exact searches go by it. One that fits the smaller is feasible:
    heuristics do. Between lie last digits, and the judge is asked.
    """

    problem: VerificationBatchProblem

    @cached_property
    def seconds(self) -> Floats:
        """w_i of every request."""
        return self.problem.estimator.weights(self.problem.new_tokens, self.problem.cached_tokens)

    @cached_property
    def rooms(self) -> tuple[Floats, Floats]:
        """The smaller and the larger room for the weights of a batch with each request: d_i - t_k -
        c.
        """
        problem = self.problem
        digit = np.spacing(np.abs(problem.deadline_seconds)) + np.spacing(abs(problem.now_seconds))
        with np.errstate(over="ignore"):
            left = problem.deadline_seconds - problem.now_seconds
            less, more = (
                room(left, digit, digits) - problem.estimator.overhead_seconds
                for digits in self._digits
            )
        return less, more

    @cached_property
    def memory_rooms(self) -> tuple[float, float]:
        """The smaller and the larger room in memory."""
        less, more = (
            float(room(self.problem.memory_bytes, digits=digits)) for digits in self._digits
        )
        return less, more

    @property
    def _digits(self) -> tuple[float, float]:
        """How many last digits the sums over a batch may be off, in both directions."""
        digits = self.problem.requests + 8.0
        return -digits, digits

    @cached_property
    def hopeless(self) -> list[int]:
        """Requests that no feasible batch holds."""
        late = self.seconds > self.rooms[SURE]
        large = self.problem.request_memory_bytes > self.memory_rooms[SURE]
        return [i for i in np.flatnonzero(late | large).tolist() if not self.admits([i])]

    def without_hopeless(self, order: Iterable[int]) -> list[int]:
        """Return the requests of an order that are not hopeless."""
        hopeless = set(self.hopeless)
        return [i for i in order if i not in hopeless]

    @cached_property
    def items(self) -> Ints:
        """Requests that are worth something and not hopeless, by decreasing deadline, ties by
        index.
        """
        useful = self.problem.expected_tokens > 0
        useful[self.hopeless] = False
        found = np.flatnonzero(useful)
        return found[np.argsort(-self.rooms[MOST][found], kind="stable")]

    @cached_property
    def columns(self) -> tuple[Floats, Floats, Floats, Floats, float]:
        """Values, seconds, memory and rooms of the items, and the room in memory, for
        proofs.
        """
        return self.columns_within(MOST)

    def columns_within(self, which: int) -> tuple[Floats, Floats, Floats, Floats, float]:
        """Return the columns with the one or the other rooms."""
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
        """For each distinct room, the end of the prefix of items that have no less."""
        rooms = self.columns[3]
        return np.flatnonzero(np.append(rooms[1:] != rooms[:-1], True)[: len(rooms)]) + 1

    def admits(self, batch: Sequence[int]) -> bool:
        """Return whether the judge finds a batch feasible; it is asked where the last digits
        matter.
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

    def in_order(self, order: Iterable[int], skip: bool) -> list[int]:
        """Return the batch that takes requests in an order; at one that does not fit it stops, or
        skips it.
        """
        seconds, memory = self.seconds, self.problem.request_memory_bytes
        rooms, memory_room = self.rooms[SURE], self.memory_rooms[SURE]
        batch: list[int] = []
        t, used, least = 0.0, 0.0, math.inf
        for i in order:
            more_t, more_used = t + float(seconds[i]), used + float(memory[i])
            left = min(least, float(rooms[i]))
            if more_used <= memory_room and more_t <= left:
                batch.append(int(i))
                t, used, least = more_t, more_used, left
            elif not skip:
                break
        return batch

    def bounds(
        self, budget: Budget, enough: float, levels: float = math.inf
    ) -> tuple[Floats, Floats, Floats]:
        """Return a bound on every threshold and its prices of time and memory; tight only above
        `enough`.

        Neighbours share a bound. Where it is above `enough` they are divided, level by level, until
        each has its own or there were as many levels as asked for.
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
        return found[0], found[1], found[2]

    def call(
        self, budget: Budget, kernel: Callable[..., T], *arguments: Any, partial: bool = False
    ) -> T:
        """Return the result of a kernel; where there are many requests, without overrunning the
        time limit.
        """
        if len(self.items) < LARGE:
            return kernel(*arguments, np.zeros(1, np.uint8))
        return budget.call(kernel, *arguments, partial=partial)
