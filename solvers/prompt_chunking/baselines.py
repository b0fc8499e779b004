"""Baselines for `prompt-chunking` problems: the whole prompt as one chunk, equal chunks of a fixed
or optimised size, and geometric chunks.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Ints, PositiveInt
from specopt.models.prompt_chunking.problem import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.method import (
    PromptChunkingMethod,
    call,
    certify,
    prepare_and_bound,
)
from specopt.solvers.prompt_chunking.prepare import Prepared, work_space


def equal_chunks(problem: PromptChunkingProblem, tokens: int) -> Ints:
    """Return equal chunks of `tokens` tokens. The last chunk contains the remaining tokens.

    The size is rounded up to a multiple of the grid, and is increased if there would be more than
    the maximum number of chunks.
    """
    N, grid = problem.prompt_tokens, problem.grid_tokens or 1
    size = max(1, min(N, tokens))
    if problem.max_chunks is not None:
        size = max(size, -(-N // problem.max_chunks))
    size = -(-size // grid) * grid
    full = (N - 1) // size
    return np.array([size] * full + [N - full * size], np.int64)


def best_equal_chunks(problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Ints:
    """Return the best equal chunks, at a cost of O(P N log N). Ties go to the larger size."""
    kernels, least = budget.load("prompt_chunking.families"), -(-prepared.cells // prepared.most)
    size = call(budget, kernels.best_equal, least, prepared.prompt)
    return equal_chunks(problem, size * (problem.grid_tokens or 1))


@dataclass(frozen=True)
class Family(PromptChunkingMethod):
    """Base class of the methods whose chunks follow a rule, such as equal chunks."""

    guarantee = "none; a certified gap"

    def run(self, problem: PromptChunkingProblem, budget: Budget) -> Outcome:
        """Compute a lower bound, and then cut the prompt into chunks."""
        return self.cut(problem, prepare_and_bound(problem, budget), budget)

    @abstractmethod
    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Cut the prompt into chunks by the rule, and return the outcome."""


@dataclass(frozen=True)
class Fixed(Family):
    """Use chunks of a fixed size. The last chunk contains the remaining tokens.

    The size is rounded up to a multiple of the grid, and is increased if there would be more than
    the maximum number of chunks.

    Parameters
    ----------
    chunk_tokens
        Number of tokens per chunk.
    """

    chunk_tokens: PositiveInt = 128

    name = "fixed"
    source = "chunked prefill with a constant size; U-Sarathi's sizes in paper 4 are 128 and 256"
    complexity = "O(N)"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Cut the prompt into chunks of `chunk_tokens` tokens."""
        chunks = equal_chunks(problem, self.chunk_tokens)
        return certify(chunks, budget, chunk_tokens=int(chunks[0]))


@dataclass(frozen=True)
class BestEqual(Family):
    """Use equal chunks of the best size. The last chunk contains the remaining tokens."""

    name = "best-equal"
    source = "enumeration of all sizes; what Eq. 3 of paper 4 approximates"
    guarantee = "the best equal chunks; a certified gap"
    complexity = "O(P N log N)"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Try every chunk size, and use the best one."""
        chunks = best_equal_chunks(problem, prepared, budget)
        return certify(chunks, budget, chunk_tokens=int(chunks[0]))


@dataclass(frozen=True)
class Geometric(Family):
    """Use the best chunks found whose sizes form a geometric sequence.

    The search tries numbers of chunks and ratios of the sequence.

    If chunks do not queue in the cloud, each optimal chunk is completed just in time. Its size is
    therefore about beta_up / beta_down times the size of the previous chunk.

    Parameters
    ----------
    max_length
        Maximum number of chunks to try. The search stops earlier if four consecutive lengths bring
        no improvement.
    """

    max_length: PositiveInt = 32

    name = "geometric"
    source = "own; paper 4, Sec. 3.3, with chunks that shrink"
    complexity = "O(P max_length^2)"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Search for the best ratio of the sequence at each length."""
        kernels = budget.load("prompt_chunking.families")
        most = min(self.max_length, prepared.most)
        bounds = np.zeros(most + 1, np.int64)
        work = work_space(prepared, min(most, prepared.cells))
        count = call(
            budget, kernels.best_geometric, most, prepared.prompt, work, bounds, partial=True
        )
        return certify(prepared.chunks(bounds[: count + 1]), budget)


@dataclass(frozen=True)
class Whole(Family):
    """Use a single chunk that contains the whole prompt."""

    name = "whole"
    source = "U-shaped inference, a baseline of paper 4"
    complexity = "O(1), the bound O(N)"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Send the whole prompt as one chunk."""
        return certify([problem.prompt_tokens], budget)


BASELINES = (
    Fixed,
    Geometric,
    Whole,
)
