"""What the methods and kernels of serving latency work on: sorted tasks and plain arrays."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from specopt.models.acceptance import (
    all_decoding_steps,
    decoding_steps,
    expected_tokens_per_step,
    slowest_rounds,
)
from specopt.models.fields import Floats, Ints
from specopt.models.rates import Rates
from specopt.models.serving_data import Mechanism
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.serving_method import PreparedServing

Batches = list[list[int]]
"""Sorted positions of the tasks of each batch, in pipeline order."""


@dataclass(frozen=True)
class Prepared(PreparedServing):
    """A problem of serving latency under one mechanism, as arrays for the kernels."""

    problem: ServingLatencyProblem

    @property
    def tabled(self) -> bool:
        """Whether stage times are tabled: no closed forms hold of measured passes and of the
        slowest task's rounds.
        """
        return bool(self.problem.tables) or self.problem.rounds == "slowest"

    @property
    def linear(self) -> bool:
        """Whether both runtimes are affine."""
        return not self.tabled and self.runtimes.shape[1] == 1

    @cached_property
    def lengths(self) -> Sequence[int]:
        """The speculation lengths that save some task a step.

        As many steps take no less time with longer drafts.
        """
        problem = self.problem
        every = self.served_lengths
        if self.mechanism == "autoregressive":
            return every
        differ = problem.output_lengths == "predicted" or isinstance(problem.acceptance_rate, Rates)
        if problem.rounds == "slowest" or differ:
            return every
        outputs = {problem.longest_output, *np.unique(problem.planned_output_tokens).tolist()}

        def steps(length: int) -> list[int]:
            tokens = self.tokens_per_step(length)
            return [decoding_steps(output, tokens) for output in outputs]

        found = [1]
        while True:
            before = steps(found[-1])
            place = bisect.bisect_left(
                every, True, lo=found[-1], key=lambda length: steps(length) != before
            )
            if place == len(every):
                return found
            found.append(every[place])

    def tokens_per_step(self, length: int) -> float:
        """Return L for a speculation length (Eq. 7)."""
        if length == 0:
            return 1.0
        return expected_tokens_per_step(self.problem.common_rate, length)

    def batch_steps(self, outputs: Floats | Ints, length: int) -> int:
        """Return the decoding steps of a batch of tasks of these output lengths (Eq. 8), or of the
        slowest of them.
        """
        if self.problem.rounds == "slowest":
            rate = self.problem.common_rate if length else 0.0
            return slowest_rounds([(int(output), rate) for output in outputs.tolist()], length)
        return decoding_steps(int(outputs.max()), self.tokens_per_step(length))

    def steps_of(self, outputs: Floats, length: int) -> Ints:
        """Return the decoding steps of each of several output lengths (Eq. 8)."""
        return all_decoding_steps(outputs, self.tokens_per_step(length))

    def plan(
        self, batches: Batches, length: int, shares: Floats | None = None
    ) -> ServingLatencyPlan:
        """Return a plan from batches of *sorted positions*, in pipeline order; optimal shares
        unless given.
        """
        sizes = [len(batch) for batch in batches]
        tasks = self.order[
            np.fromiter(itertools.chain.from_iterable(batches), np.int64, sum(sizes))
        ]
        rows = iter(tasks[np.lexsort((tasks, np.repeat(np.arange(len(sizes)), sizes)))].tolist())
        return ServingLatencyPlan(
            batches=tuple(tuple(itertools.islice(rows, size)) for size in sizes),
            **self.shared_fields(length, shares),
        )

    def slots(self, plan: ServingLatencyPlan) -> Ints:
        """Return the batch of every sorted position in a plan."""
        found = np.empty(self.tasks, np.int64)
        for number, batch in enumerate(plan.batches):
            found[list(batch)] = number
        return found[self.order]


def prepare(problem: ServingLatencyProblem, mechanism: Mechanism | None = None) -> Prepared:
    """Return the arrays of a problem under a mechanism (the problem's own if None)."""
    return Prepared.of(problem, mechanism)


def slices_of(tasks: int, size: int) -> Batches:
    """Return consecutive sorted positions in batches of one size; the last batch takes the rest."""
    return [list(range(first, min(first + size, tasks))) for first in range(0, tasks, size)]


def feasible(prepared: Prepared, batches: Batches) -> bool:
    """Return whether every batch fits the memory."""
    return all(
        prepared.fits(len(batch), prepared.inputs[batch].max(), prepared.outputs[batch].max())
        for batch in batches
    )
