"""The best equal chunks, found by trying every size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Ints
from specopt.models.prompt_chunking.problem import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.baselines import Family, equal_chunks
from specopt.solvers.prompt_chunking.method import call, certify, plan_of
from specopt.solvers.prompt_chunking.prepare import Prepared

STAGES_PER_CHECK = 4_000_000
"""Stages simulated between two checks of the clock, about 10 ms."""


def best_equal_chunks(problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Ints:
    """Return the best chunks of one size; of those that tie, the larger ones. O(P N log N)."""
    kernels = budget.load("prompt_chunking.families")
    grid, found = problem.grid_tokens or 1, np.zeros(1, np.int64)
    least, work = (
        -(-prepared.cells // prepared.most),
        max(1, STAGES_PER_CHECK // problem.pipeline_length),
    )
    size, best, best_seconds = prepared.cells, None, np.inf
    while size >= least:
        size = call(budget, kernels.best_equal, size, least, work, prepared.prompt, found)
        chunks = equal_chunks(problem, int(found[0]) * grid)
        seconds = problem.evaluate(plan_of(chunks)).objective
        if best is None or seconds < best_seconds:
            best, best_seconds = chunks, seconds
        budget.check()
    assert best is not None, "the whole prompt is always tried"
    return best


@dataclass(frozen=True)
class BestEqual(Family):
    """Use chunks of the best single size, where the last one has the remaining tokens."""

    name = "best-equal"
    source = "enumeration of all sizes; what Eq. 3 of paper 4 approximates"
    guarantee = "the best equal chunks; a certified gap"
    complexity = "O(P N log N)"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Try every size."""
        chunks = best_equal_chunks(problem, prepared, budget)
        return certify(chunks, budget, chunk_tokens=int(chunks[0]))
