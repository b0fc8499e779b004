"""Batches of one size, tasks sorted by input length, the last takes the rest: rivals of paper 1
(Sec. IV).

`no-batching`, `static-batching`, `max-batching` and `heuristic-batching` differ in the sizes that
they try; every speculation length is tried. The paper's other two rivals are problems, not methods:
"SD without pipeline" is a pipelined plan judged on the `sequential` problem, autoregressive serving
is `heuristic-batching` on the `autoregressive` one.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from specopt.models.serving_latency.problem import ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.serving_latency.algorithm_1 import TIE
from specopt.solvers.serving_latency.method import (
    ALIKE,
    ServingLatencyMethod,
    best_of_mechanisms,
    certify,
)
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import rate, stages

_SECONDS_PER_PAIR = (
    1e-9  # of batches, to rate a plan whose batches finish at different steps: the most, of kinks
)


def inference_seconds(
    prepared: Prepared, batches: list[list[int]], length: int, budget: Budget
) -> float:
    """Return T_inf of batches of sorted positions, in pipeline order (Eq. 20-22)."""
    if prepared.problem.output_lengths == "known":
        budget.check(_SECONDS_PER_PAIR * len(batches) ** 2)  # of a call that cannot be interrupted
    slot = np.empty(prepared.tasks, np.int64)
    for m, batch in enumerate(batches):
        slot[batch] = m
    return rate(stages(prepared, length), slot, len(batches), budget.load("serving_latency.plans"))


def slices_of(tasks: int, size: int) -> list[list[int]]:
    """Return consecutive sorted positions in batches of one size; the last batch takes the rest."""
    return [list(range(first, min(first + size, tasks))) for first in range(0, tasks, size)]


def feasible(prepared: Prepared, batches: list[list[int]]) -> bool:
    """Return whether every batch fits the memory."""
    return all(
        prepared.fits(len(batch), prepared.inputs[batch].max(), prepared.outputs[batch].max())
        for batch in batches
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

    complexity = "O(l_max M N) per size tried, M batches"
    guarantee = "none"
    forms = (ALIKE,)

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
