"""Batches of one size, tasks sorted by input length, the last takes the rest: rivals of paper 1 (Sec. IV).

`no-batching`, `static-batching`, `max-batching` and `heuristic-batching` differ in the sizes that they try; every
speculation length is tried. The paper's other two rivals are problems, not methods: "SD without pipeline" is a
pipelined plan judged on the `sequential` problem, autoregressive serving is `heuristic-batching` on the
`autoregressive` one.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.fields import PositiveInt
from specopt.models.serving_latency import ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.serving_latency.algorithm_1 import TIE
from specopt.solvers.serving_latency.method import ServingLatencyMethod, best_of_mechanisms, certify
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import rate, stages

_SECONDS_PER_PAIR = 2e-10  # of batches, to rate a plan whose batches finish at different steps, roughly


def inference_seconds(prepared: Prepared, batches: list[list[int]], length: int, budget: Budget) -> float:
    """Return T_inf of batches of sorted positions, in pipeline order (Eq. 20-22)."""
    if prepared.problem.output_lengths == "known":
        budget.check(_SECONDS_PER_PAIR * len(batches) ** 2)  # of a call that cannot be interrupted
    slot = np.empty(prepared.tasks, dtype=np.int64)
    for m, batch in enumerate(batches):
        slot[batch] = m
    return rate(stages(prepared, length), slot, len(batches), budget.load("serving_latency.plans"))


def slices_of(tasks: int, size: int) -> list[list[int]]:
    """Return consecutive sorted positions in batches of one size; the last batch takes the rest."""
    return [list(range(first, min(first + size, tasks))) for first in range(0, tasks, size)]


def feasible(prepared: Prepared, batches: list[list[int]]) -> bool:
    """Return whether every batch fits the memory."""
    return all(
        prepared.fits(len(batch), prepared.inputs[batch].max(), prepared.outputs[batch].max()) for batch in batches
    )


def largest_feasible(prepared: Prepared, size: int) -> list[list[int]]:
    """Return slices of the given size, or of the largest smaller one at which every batch fits."""
    for smaller in range(min(size, prepared.tasks), 1, -1):
        batches = slices_of(prepared.tasks, smaller)
        if feasible(prepared, batches):
            return batches
    return slices_of(prepared.tasks, 1)


@dataclass(frozen=True)
class EqualSizes(ServingLatencyMethod):
    """Base of the batching baselines."""

    complexity: ClassVar[str] = "O(l_max M N) per size tried, M batches"
    guarantee: ClassVar[str] = "none"

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Return the best of the candidates over mechanisms and speculation lengths."""

        def solve(prepared: Prepared) -> Outcome:
            best, plan = np.inf, None
            for length in prepared.lengths:
                budget.check()
                batches = self.candidate(prepared, length, budget)
                seconds = inference_seconds(prepared, batches, length, budget)
                if plan is None or seconds < best * (1 - TIE):
                    best, plan = seconds, prepared.plan(batches, length)
            assert plan is not None, "there is a speculation length"
            return certify(prepared, plan, budget)

        return best_of_mechanisms(problem, budget, solve)

    @abstractmethod
    def candidate(self, prepared: Prepared, length: int, budget: Budget) -> list[list[int]]:
        """Return the batches to try with a speculation length."""


@dataclass(frozen=True)
class NoBatching(EqualSizes):
    """One task at a time through the pipeline, shortest input first."""

    name: ClassVar[str] = "no-batching"
    source: ClassVar[str] = "paper 1, Sec. IV-A, benchmark 2"

    def candidate(self, prepared: Prepared, length: int, budget: Budget) -> list[list[int]]:
        """Batch no tasks."""
        return slices_of(prepared.tasks, 1)


@dataclass(frozen=True)
class StaticBatching(EqualSizes):
    """Batches of a small fixed size.

    Parameters
    ----------
    size
        Tasks per batch; a smaller size is used where this one does not fit the memory.
    """

    size: PositiveInt = 8

    name: ClassVar[str] = "static-batching"
    source: ClassVar[str] = "paper 1, Sec. IV-B, benchmark 1"

    def candidate(self, prepared: Prepared, length: int, budget: Budget) -> list[list[int]]:
        """Batch by the fixed size."""
        return largest_feasible(prepared, self.size)


@dataclass(frozen=True)
class MaxBatching(EqualSizes):
    """Batches of the largest size that fits with the longest input and output."""

    name: ClassVar[str] = "max-batching"
    source: ClassVar[str] = "paper 1, Sec. IV-B, benchmark 2"

    def candidate(self, prepared: Prepared, length: int, budget: Budget) -> list[list[int]]:
        """Batch by the largest size that fits any tasks."""
        padded, outputs = float(prepared.inputs.max()), float(prepared.outputs.max())
        sizes = range(prepared.tasks, 1, -1)
        size = next((size for size in sizes if prepared.fits(size, padded, outputs)), 1)
        return slices_of(prepared.tasks, size)


@dataclass(frozen=True)
class HeuristicBatching(EqualSizes):
    """Sizes 2, 3, ... until the latency first rises or a batch no longer fits, for every speculation length.

    Parameters
    ----------
    first_size
        The size to begin with.
    """

    first_size: PositiveInt = 2

    name: ClassVar[str] = "heuristic-batching"
    source: ClassVar[str] = "paper 1, Sec. IV-A, benchmark 4, and Sec. IV-B, benchmark 3"

    def candidate(self, prepared: Prepared, length: int, budget: Budget) -> list[list[int]]:
        """Return batches of the last size before the latency rises."""
        previous, found = np.inf, None
        for size in range(min(self.first_size, prepared.tasks), prepared.tasks + 1):
            budget.check()
            batches = slices_of(prepared.tasks, size)
            if not feasible(prepared, batches):
                break
            seconds = inference_seconds(prepared, batches, length, budget)
            if seconds > previous:
                break
            previous, found = seconds, batches
        return found or largest_feasible(prepared, self.first_size)
