"""Families of chunks: the whole prompt, equal chunks of a size, the best equal ones, those of Eq. 3, geometric ones."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Ints
from specopt.models.prompt_chunking import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.method import PromptChunkingMethod, call, plan_of, prepare_and_bound
from specopt.solvers.prompt_chunking.prepare import Prepared

STAGES_PER_CHECK = 4_000_000
"""Stages to play between two looks at the clock: about 10 ms."""


def equal_chunks(problem: PromptChunkingProblem, tokens: int) -> Ints:
    """Return chunks of `tokens` tokens, or the least more that grid and cap allow; the last takes the rest."""
    N, grid = problem.prompt_tokens, problem.grid_tokens or 1
    size = max(1, min(N, tokens))
    if problem.max_chunks is not None:
        size = max(size, -(-N // problem.max_chunks))
    size = -(-size // grid) * grid
    full = (N - 1) // size
    return np.array([size] * full + [N - full * size], np.int64)


def best_equal_chunks(problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Ints:
    """Return the best chunks of one size; of those that tie, the larger ones. O(P N log N)."""
    kernels = budget.load("prompt_chunking_families")
    grid, found = problem.grid_tokens or 1, np.zeros(1, np.int64)
    least, work = -(-prepared.cells // prepared.most), max(1, STAGES_PER_CHECK // problem.pipeline_length)
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
class Family(PromptChunkingMethod):
    """Base of the methods whose chunks follow a rule."""

    guarantee = "none; a certified gap"

    def run(self, problem: PromptChunkingProblem, budget: Budget) -> Outcome:
        """Bound, and cut the prompt."""
        return self.cut(problem, prepare_and_bound(problem, budget), budget)

    @abstractmethod
    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Return the outcome of the chunks."""
