"""What the methods and kernels of verification batching work on: requests with what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.models.verification_batch import VerificationBatchProblem
from specopt.solvers.budget import Budget

LARGE = 2000
"""Requests from which on one compiled call may outlast a time limit: it is then watched."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A problem's requests with what they cost, and feasibility as the methods test it."""

    problem: VerificationBatchProblem

    @cached_property
    def seconds(self) -> Floats:
        """w_i of every request."""
        return self.problem.estimator.weights(self.problem.new_tokens, self.problem.cached_tokens)

    @cached_property
    def due(self) -> Floats:
        """d_i - t_k of every request: the methods know durations, and no clock that could swallow their digits."""
        return self.problem.deadline_seconds - self.problem.now_seconds

    @cached_property
    def hopeless(self) -> list[int]:
        """Requests that no feasible batch holds."""
        problem = self.problem
        late = problem.estimator.overhead_seconds + self.seconds > self.due
        large = problem.request_memory_bytes > problem.memory_bytes
        return [int(i) for i in np.flatnonzero(late | large)]

    @cached_property
    def items(self) -> Ints:
        """Requests that are worth something and not hopeless, by decreasing deadline, ties by index."""
        useful = self.problem.expected_tokens > 0
        useful[self.hopeless] = False
        found = np.flatnonzero(useful)
        return found[np.argsort(-self.due[found], kind="stable")]

    @cached_property
    def columns(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Values, seconds, memory and seconds until the deadlines of the items."""
        problem, items = self.problem, self.items
        return (
            problem.expected_tokens[items],
            self.seconds[items],
            problem.request_memory_bytes[items],
            self.due[items],
        )

    @property
    def clock(self) -> tuple[float, float, float]:
        """Start of the batch, the zero of `due`; its constant overhead; and the memory."""
        return 0.0, self.problem.estimator.overhead_seconds, self.problem.memory_bytes

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
        return memory <= problem.memory_bytes and seconds <= float(self.due[members].min())

    def in_order(self, order: Iterable[int], skip: bool) -> list[int]:
        """Return the batch that takes requests in an order; at one that does not fit it stops, or skips it."""
        problem = self.problem
        _, c, M = self.clock
        batch: list[int] = []
        t, memory, earliest = 0.0, 0.0, math.inf
        for i in order:
            more_t, more_memory = t + float(self.seconds[i]), memory + float(problem.request_memory_bytes[i])
            due = min(earliest, float(self.due[i]))
            if more_memory <= M and c + more_t <= due:
                batch.append(int(i))
                t, memory, earliest = more_t, more_memory, due
            elif not skip:
                break
        return batch

    def bounds(self, budget: Budget, enough: float, ends: Ints | None = None) -> tuple[Floats, Floats, Floats]:
        """Return a bound on every threshold and its prices of time and memory; tight only above `enough`.

        Of some thresholds only, given by their ends, each counts the items of those left out before it as its own.
        """
        kernels = budget.load("verification_batch_bound")
        ends = self.ends if ends is None else np.ascontiguousarray(ends)
        count = len(ends)
        found = np.empty(count), np.empty(count), np.empty(count)
        items = kernels.Items(*self.columns, *self.clock)
        self.call(budget, kernels.bound_thresholds, ends, items, enough, *found)
        return found

    def call(self, budget: Budget, kernel: Callable[..., T], *arguments: Any, partial: bool = False) -> T:
        """Return what a kernel gives; where there are many requests, without overrunning the time limit."""
        if len(self.items) < LARGE:
            return kernel(*arguments, np.zeros(1, dtype=np.uint8))
        return budget.call(kernel, *arguments, partial=partial)
