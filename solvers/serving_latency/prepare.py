"""Conversion of `serving-latency` problems to sorted tasks and arrays for the methods and compiled
kernels.
"""

from __future__ import annotations

import bisect
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
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.serving_method import PreparedServing

Batches = Sequence[list[int] | Ints]
"""Batches in pipeline order, each of which contains positions in the sorted task order."""


@dataclass(frozen=True)
class Prepared(PreparedServing):
    """A `serving-latency` problem under one mechanism, converted to arrays for the kernels."""

    problem: ServingLatencyProblem

    @property
    def tabled(self) -> bool:
        """Whether stage times are read from tables.

        Tables are needed for measured pass durations and for rounds that wait for the slowest task,
        because neither has a closed form.
        """
        return bool(self.problem.tables) or self.problem.rounds == "slowest"

    @property
    def linear(self) -> bool:
        """Whether the runtimes of both stages are affine."""
        return not self.tabled and self.runtimes.shape[1] == 1

    @cached_property
    def lengths(self) -> Sequence[int]:
        """Speculation lengths that save a decoding step for at least one task.

        A longer draft saves no time unless it reduces the number of steps.
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
        """Return L, the expected number of tokens per step at a speculation length (Eq. 7)."""
        if length == 0:
            return 1.0
        return expected_tokens_per_step(self.problem.common_rate, length)

    def batch_steps(self, outputs: Floats | Ints, length: int) -> int:
        """Return the number of decoding steps for a batch of tasks with the given output lengths
        (Eq. 8).

        If the slowest task determines the rounds, return the expected number of rounds until all
        tasks have finished, rounded up.
        """
        if self.problem.rounds == "slowest":
            rate = self.problem.common_rate if length else 0.0
            return slowest_rounds([(int(output), rate) for output in outputs.tolist()], length)
        return decoding_steps(int(outputs.max()), self.tokens_per_step(length))

    def steps_of(self, outputs: Floats, length: int) -> Ints:
        """Return the number of decoding steps for each output length (Eq. 8)."""
        return all_decoding_steps(outputs, self.tokens_per_step(length))

    def largest(self, padded: float, outputs: float) -> int:
        """Return the size of the largest batch that fits in memory, or 0 if not even one task fits.

        Every task in the batch has the input length `padded` and the output length `outputs`.
        """
        sizes = range(1, self.tasks + 1)
        return bisect.bisect_left(
            sizes, True, key=lambda size: not self.fits(size, padded, outputs)
        )

    def plan(
        self, batches: Batches, length: int, shares: Floats | None = None
    ) -> ServingLatencyPlan:
        """Build a plan from batches in pipeline order. Each batch contains positions in the sorted
        task order.

        If `shares` is None, the optimal bandwidth shares are used.
        """
        order = self.order.tolist()
        return ServingLatencyPlan(
            batches=tuple(tuple(sorted(order[k] for k in batch)) for batch in batches),
            **self.shared_fields(length, shares),
        )

    def slots(self, plan: ServingLatencyPlan) -> Ints:
        """Return the index of the batch that contains each task in a plan. The tasks are in sorted
        order.
        """
        found = np.empty(self.tasks, np.int64)
        for number, batch in enumerate(plan.batches):
            found[list(batch)] = number
        return found[self.order]


prepare = Prepared.of


def slices_of(tasks: int, size: int) -> list[list[int]]:
    """Divide the sorted positions 0, ..., `tasks` - 1 into consecutive batches of `size` positions.
    The last batch contains the remaining positions.
    """
    return [list(range(first, min(first + size, tasks))) for first in range(0, tasks, size)]


def feasible(prepared: Prepared, batches: Batches) -> bool:
    """Return whether every batch fits in memory."""
    return all(
        prepared.fits(len(batch), prepared.inputs[batch].max(), prepared.outputs[batch].max())
        for batch in batches
    )
