"""The baselines of paper 1 (Sec. IV), which use batches of equal size or variants of Algorithm 1.

Batches of equal size contain tasks sorted by input length, and the last batch contains the
remaining tasks. The equal-size baselines differ in the sizes that they try, and each of them tries
every speculation length. The paper's other two baselines are problems, not methods: "SD without
pipeline" is a pipelined plan evaluated on the `sequential` problem, and autoregressive serving is
`heuristic-batching` on the `autoregressive` problem.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from specopt.models.fields import PositiveInt
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.serving_latency.algorithm_1 import TIE, Algorithm1, best_plan
from specopt.solvers.serving_latency.method import (
    ALIKE,
    ServingLatencyMethod,
    best_of_mechanisms,
    certify,
)
from specopt.solvers.serving_latency.prepare import Batches, Prepared, feasible, slices_of
from specopt.solvers.serving_latency.stages import rate, stages

# Maximum time per pair of batches to rate a plan whose batches finish at different steps.
_SECONDS_PER_PAIR = 1e-9


@dataclass(frozen=True)
class EqualSizes(ServingLatencyMethod):
    """Base class of the baselines with batches of equal size."""

    complexity = "O(l_max M N) per size tried, M batches"
    guarantee = "none"
    forms = (ALIKE,)

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Return the best plan with batches of equal size, over all mechanisms and speculation
        lengths.
        """

        def solve(prepared: Prepared) -> Outcome:
            best, plan = np.inf, None
            for length in prepared.lengths:
                budget.check()
                batches = self.batches(prepared, length, budget)
                seconds = inference_seconds(prepared, batches, length, budget)
                if plan is None or seconds < best * (1 - TIE):
                    best, plan = seconds, prepared.plan(batches, length)
            assert plan is not None, "there is a speculation length"
            return certify(prepared, plan, budget)

        return best_of_mechanisms(problem, budget, solve)

    @abstractmethod
    def batches(self, prepared: Prepared, length: int, budget: Budget) -> Batches:
        """Return batches of the size that this baseline chooses at one speculation length."""


def inference_seconds(prepared: Prepared, batches: Batches, length: int, budget: Budget) -> float:
    """Return the inference time T_inf of a plan, in seconds (Eq. 20-22).

    `batches` contains the batches in pipeline order, as positions in the sorted task order.
    """
    if prepared.problem.output_lengths == "known":
        budget.check(_SECONDS_PER_PAIR * len(batches) ** 2)  # the call cannot be interrupted
    slot = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
    return rate(stages(prepared, length), slot, len(batches), budget.load("serving_latency.plans"))


def largest_feasible(prepared: Prepared, size: int) -> Batches:
    """Return batches of `size` tasks if all of them fit in memory. Otherwise, use the largest
    smaller size at which all batches fit.
    """
    for smaller in range(min(size, prepared.tasks), 1, -1):
        batches = slices_of(prepared.tasks, smaller)
        if feasible(prepared, batches):
            return batches
    return slices_of(prepared.tasks, 1)


@dataclass(frozen=True)
class NoBatching(EqualSizes):
    """A baseline that serves one task at a time through the pipeline, shortest input first."""

    name = "no-batching"
    source = "paper 1, Sec. IV-A, benchmark 2"

    def fewest_batches(self, prepared: Prepared) -> float:
        """Return the number of tasks, which equals the number of batches."""
        return prepared.tasks

    def batches(self, prepared: Prepared, length: int, budget: Budget) -> Batches:
        """Return one batch for each task."""
        return slices_of(prepared.tasks, 1)


@dataclass(frozen=True)
class StaticBatching(EqualSizes):
    """A baseline with batches of a small fixed size.

    Parameters
    ----------
    size
        Number of tasks per batch. A smaller number is used if batches of this size do not fit in
        memory.
    """

    size: PositiveInt = 8

    name = "static-batching"
    source = "paper 1, Sec. IV-B, benchmark 1"

    def batches(self, prepared: Prepared, length: int, budget: Budget) -> Batches:
        """Return batches of the fixed size, or of a smaller size if they do not fit in memory."""
        return largest_feasible(prepared, self.size)


@dataclass(frozen=True)
class MaxBatching(EqualSizes):
    """A baseline with the largest batch size that fits in memory even if every task has the longest
    input and output.
    """

    name = "max-batching"
    source = "paper 1, Sec. IV-B, benchmark 2"

    def batches(self, prepared: Prepared, length: int, budget: Budget) -> Batches:
        """Return batches of the largest size that fits in memory for every choice of tasks."""
        longest = float(prepared.inputs.max()), float(prepared.outputs.max())
        return slices_of(prepared.tasks, max(1, prepared.largest(*longest)))


@dataclass(frozen=True)
class HeuristicBatching(EqualSizes):
    """A baseline that tries the batch sizes 2, 3, ... for every speculation length.

    It stops as soon as the latency increases or a batch no longer fits in memory.

    Parameters
    ----------
    first_size
        First batch size to try.
    """

    first_size: PositiveInt = 2

    name = "heuristic-batching"
    source = "paper 1, Sec. IV-A, benchmark 4, and Sec. IV-B, benchmark 3"

    def batches(self, prepared: Prepared, length: int, budget: Budget) -> Batches:
        """Return batches of the last size that was tried before the latency increased or memory was
        exceeded.
        """
        previous, found, check = np.inf, None, budget.pace()
        for size in range(min(self.first_size, prepared.tasks), prepared.tasks + 1):
            check()
            batches = slices_of(prepared.tasks, size)
            if not feasible(prepared, batches):
                break
            seconds = inference_seconds(prepared, batches, length, budget)
            if seconds > previous:
                break
            previous, found = seconds, batches
        return found or largest_feasible(prepared, self.first_size)


@dataclass(frozen=True)
class FixedLength(Algorithm1):
    """A baseline that runs Algorithm 1 at a single speculation length.

    Parameters
    ----------
    length
        Number of draft tokens per step. A number greater than l_max is replaced by l_max.
    """

    length: PositiveInt = 7

    name = "fixed-length"
    source = "paper 1, Sec. IV-A, benchmark 3"
    guarantee = "none"
    complexity = "O(K^2)"

    def plan(self, prepared: Prepared, budget: Budget) -> ServingLatencyPlan:
        """Return Algorithm 1's plan at the fixed speculation length."""
        length = min(self.length, prepared.problem.max_speculation_length or 1)
        return best_plan(prepared, budget, lengths=[length])


@dataclass(frozen=True)
class UniformBandwidth(Algorithm1):
    """A baseline with Algorithm 1's batches and speculation length, but with equal bandwidth
    shares.
    """

    name = "uniform-bandwidth"
    source = "paper 1, Sec. IV-C"
    guarantee = "none"
    complexity = "O(l_max K^2)"

    def plan(self, prepared: Prepared, budget: Budget) -> ServingLatencyPlan:
        """Return a plan with Algorithm 1's batches and speculation length, and with bandwidth share
        1/K for each of the K tasks.
        """
        return best_plan(prepared, budget, np.full(prepared.tasks, 1.0 / prepared.tasks))


BASELINES = (
    FixedLength,
    HeuristicBatching,
    MaxBatching,
    NoBatching,
    StaticBatching,
    UniformBandwidth,
)
