"""The schemes that paper 1 compares with (Sec. IV), tasks sorted by input length.

Serving baselines: `no-batching`, `fixed-length`. Batching baselines: `static-batching`, `max-batching`,
`heuristic-batching`; their batches have one size, the last takes the rest, and every speculation length is tried.
`uniform-bandwidth` keeps Algorithm 1's batches and divides the band evenly.

The paper's other two rivals are problems, not methods: "SD without pipeline" is a pipelined plan judged on the
`sequential` problem, autoregressive serving is `heuristic-batching` on the `autoregressive` one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.fields import PositiveInt
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.algorithm_1 import (
    TIE,
    best_plan,
    plan_without_maximum,
)
from specopt.solvers.serving_latency.bound import lower_bound
from specopt.solvers.serving_latency.contiguous import algorithm_1_batches
from specopt.solvers.serving_latency.method import Found, PerMechanism
from specopt.solvers.serving_latency.prepare import Prepared


def inference_seconds(prepared: Prepared, batches: list[list[int]], length: int, budget: Budget) -> float:
    """Return T_inf of batches of sorted positions, by the compiled recursion (Eq. 20-22)."""
    kernels = budget.load("serving_latency")
    longest = np.array([prepared.outputs[batch].max() for batch in batches])
    return float(
        kernels.plan_seconds(
            prepared.code,
            np.array([float(len(batch)) for batch in batches]),
            np.array([prepared.inputs[batch].max() for batch in batches]),
            prepared.steps_of(longest, length),
            length,
            prepared.tokens_per_step(length),
            *prepared.models,
        )
    )


def slices_of(tasks: int, size: int) -> list[list[int]]:
    """Return consecutive sorted positions in batches of one size; the last batch takes the rest."""
    return [list(range(first, min(first + size, tasks))) for first in range(0, tasks, size)]


def feasible(prepared: Prepared, batches: list[list[int]]) -> bool:
    """Tell whether every batch fits the memory."""
    return all(
        prepared.fits(len(batch), prepared.inputs[batch].max(), prepared.outputs[batch].max()) for batch in batches
    )


@dataclass(frozen=True)
class _Batching(PerMechanism):
    """Base: a rule that says which sizes to try, in order, for one speculation length."""

    complexity: ClassVar[str] = "O(l_max M N) per size tried, M batches"
    guarantee: ClassVar[str] = "none"

    def find(self, prepared: Prepared, budget: Budget) -> Found:
        """Try every speculation length and keep the best plan."""
        best, plan = np.inf, None
        for length in prepared.lengths:
            for batches in self.candidates(prepared, length, budget):
                budget.check()
                seconds = inference_seconds(prepared, batches, length, budget)
                if plan is None or seconds < best * (1 - TIE):
                    best, plan = seconds, prepared.plan(batches, length)
        assert plan is not None, "every rule falls back to sizes that fit"
        budget.offer(plan)
        return Found(plan, lower_bound(prepared, budget))

    @abstractmethod
    def candidates(self, prepared: Prepared, length: int, budget: Budget) -> Iterable[list[list[int]]]:
        """Return the batches to try."""


def _largest_feasible(prepared: Prepared, size: int) -> list[list[int]]:
    """Return slices of the given size, or of the largest smaller one at which every batch fits."""
    for smaller in range(min(size, prepared.tasks), 1, -1):
        batches = slices_of(prepared.tasks, smaller)
        if feasible(prepared, batches):
            return batches
    return slices_of(prepared.tasks, 1)


@dataclass(frozen=True)
class NoBatching(_Batching):
    """One task at a time through the pipeline, shortest input first."""

    name: ClassVar[str] = "no-batching"
    source: ClassVar[str] = "paper 1, Sec. IV-A, benchmark 2"

    def candidates(self, prepared: Prepared, length: int, budget: Budget) -> Iterable[list[list[int]]]:
        """Return batches of one task."""
        return [slices_of(prepared.tasks, 1)]


@dataclass(frozen=True)
class StaticBatching(_Batching):
    """Batches of a small fixed size.

    Parameters
    ----------
    size
        Tasks per batch; a smaller size is used where this one does not fit the memory.
    """

    size: PositiveInt = 8

    name: ClassVar[str] = "static-batching"
    source: ClassVar[str] = "paper 1, Sec. IV-B, benchmark 1"

    def candidates(self, prepared: Prepared, length: int, budget: Budget) -> Iterable[list[list[int]]]:
        """Return batches of the fixed size."""
        return [_largest_feasible(prepared, self.size)]


@dataclass(frozen=True)
class MaxBatching(_Batching):
    """Batches of the largest size that fits with the longest input and output."""

    name: ClassVar[str] = "max-batching"
    source: ClassVar[str] = "paper 1, Sec. IV-B, benchmark 2"

    def candidates(self, prepared: Prepared, length: int, budget: Budget) -> Iterable[list[list[int]]]:
        """Return batches of the largest size that fits any tasks."""
        padded, outputs = float(prepared.inputs.max()), float(prepared.outputs.max())
        size = prepared.tasks
        while size > 1 and not prepared.fits(size, padded, outputs):
            size -= 1
        return [slices_of(prepared.tasks, size)]


@dataclass(frozen=True)
class HeuristicBatching(_Batching):
    """Sizes 2, 3, ... until the latency first rises or a batch no longer fits, for every speculation length.

    Parameters
    ----------
    first_size
        The size to begin with.
    """

    first_size: PositiveInt = 2

    name: ClassVar[str] = "heuristic-batching"
    source: ClassVar[str] = "paper 1, Sec. IV-A, benchmark 4, and Sec. IV-B, benchmark 3"

    def candidates(self, prepared: Prepared, length: int, budget: Budget) -> Iterable[list[list[int]]]:
        """Return batches of growing size up to the first whose latency is above the one before."""
        previous = np.inf
        tried = []
        for size in range(min(self.first_size, prepared.tasks), prepared.tasks + 1):
            budget.check()
            batches = slices_of(prepared.tasks, size)
            if not feasible(prepared, batches):
                break
            seconds = inference_seconds(prepared, batches, length, budget)
            if seconds > previous:
                break
            tried.append(batches)
            previous = seconds
        return tried[-1:] or [_largest_feasible(prepared, self.first_size)]


@dataclass(frozen=True)
class FixedLength(PerMechanism):
    """Algorithm 1's batches at one speculation length.

    Parameters
    ----------
    length
        Draft tokens per step; l_max if that is smaller.
    """

    length: PositiveInt = 7

    name: ClassVar[str] = "fixed-length"
    source: ClassVar[str] = "paper 1, Sec. IV-A, benchmark 3"
    guarantee: ClassVar[str] = "none"
    complexity: ClassVar[str] = "O(K^2)"
    mechanisms: ClassVar[tuple[str, ...]] = ("pipelined",)

    def find(self, prepared: Prepared, budget: Budget) -> Found:
        """Run Algorithm 1 for one speculation length."""
        length = min(self.length, prepared.lengths[-1])
        batches, _ = algorithm_1_batches(prepared, length, budget)
        plan = plan_without_maximum(prepared, length) if batches is None else prepared.plan(batches, length)
        budget.offer(plan)
        return Found(plan, lower_bound(prepared, budget))


@dataclass(frozen=True)
class UniformBandwidth(PerMechanism):
    """Algorithm 1's batches and speculation length, the band divided evenly."""

    name: ClassVar[str] = "uniform-bandwidth"
    source: ClassVar[str] = "paper 1, Sec. IV-C"
    guarantee: ClassVar[str] = "none"
    complexity: ClassVar[str] = "O(l_max K^2)"
    mechanisms: ClassVar[tuple[str, ...]] = ("pipelined",)

    def find(self, prepared: Prepared, budget: Budget) -> Found:
        """Take Algorithm 1's batches and speculation length with shares 1/K."""
        plan = best_plan(prepared, budget, np.full(prepared.tasks, 1.0 / prepared.tasks))
        return Found(plan, lower_bound(prepared, budget))
