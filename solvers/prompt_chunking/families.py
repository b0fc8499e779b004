"""Families of chunks: the whole prompt, equal chunks of a size, the best equal ones, those of Eq. 3, geometric ones."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.fields import Ints, PositiveInt
from specopt.models.prompt_chunking import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.method import PromptChunkingMethod, call, certify, plan_of, prepare_and_bound
from specopt.solvers.prompt_chunking.prepare import Prepared, work_space

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
    return np.array([size] * full + [N - full * size], dtype=np.int64)


def best_equal_chunks(problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Ints:
    """Return the best chunks of one size; of those that tie, the larger ones. O(P N log N)."""
    kernels = budget.load("prompt_chunking_families")
    grid, found = problem.grid_tokens or 1, np.zeros(1, dtype=np.int64)
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

    guarantee: ClassVar[str] = "none; a certified gap"

    def run(self, problem: PromptChunkingProblem, budget: Budget) -> Outcome:
        """Bound, and cut the prompt."""
        return self.cut(problem, prepare_and_bound(problem, budget), budget)

    @abstractmethod
    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Return the outcome of the chunks."""


@dataclass(frozen=True)
class Whole(Family):
    """One chunk."""

    name: ClassVar[str] = "whole"
    source: ClassVar[str] = "U-shaped inference, a baseline of paper 4"
    complexity: ClassVar[str] = "O(1), the bound O(N)"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Take everything at once."""
        return certify([problem.prompt_tokens], budget)


@dataclass(frozen=True)
class Fixed(Family):
    """Chunks of a given size, the last takes the rest; the size goes up to the grid and to what the cap needs.

    Parameters
    ----------
    chunk_tokens
        Tokens per chunk.
    """

    chunk_tokens: PositiveInt = 128

    name: ClassVar[str] = "fixed"
    source: ClassVar[str] = "chunked prefill with a constant size; U-Sarathi's sizes in paper 4 are 128 and 256"
    complexity: ClassVar[str] = "O(N)"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Cut the prompt."""
        chunks = equal_chunks(problem, self.chunk_tokens)
        return certify(chunks, budget, chunk_tokens=int(chunks[0]))


@dataclass(frozen=True)
class BestEqual(Family):
    """Chunks of the best single size, the last takes the rest."""

    name: ClassVar[str] = "best-equal"
    source: ClassVar[str] = "enumeration of all sizes; what Eq. 3 of paper 4 approximates"
    guarantee: ClassVar[str] = "the best equal chunks; a certified gap"
    complexity: ClassVar[str] = "O(P N log N)"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Try every size."""
        chunks = best_equal_chunks(problem, prepared, budget)
        return certify(chunks, budget, chunk_tokens=int(chunks[0]))


@dataclass(frozen=True)
class Geometric(Family):
    """The best geometric sequence over its length and its ratio.

    Where chunks do not meet in the cloud, every chunk that is done just in time makes the optimum: each is then about
    beta_up / beta_down times the one before.

    Parameters
    ----------
    max_length
        The most chunks to try; the search ends before, after four lengths in a row that do not help.
    """

    max_length: PositiveInt = 32

    name: ClassVar[str] = "geometric"
    source: ClassVar[str] = "own; paper 4, Sec. 3.3, with chunks that shrink"
    complexity: ClassVar[str] = "O(P max_length^2)"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Search the ratio for each length."""
        kernels = budget.load("prompt_chunking_families")
        most = min(self.max_length, prepared.most)
        bounds = np.empty(most + 1, dtype=np.int64)
        work = work_space(prepared, min(most, prepared.cells))
        count = call(budget, kernels.best_geometric, most, prepared.prompt, work, bounds, partial=True)
        return certify(prepared.chunks(bounds[: count + 1]), budget)


@dataclass(frozen=True)
class Equation3(Family):
    """The paper's equal chunks: the root of Eq. 3, rounded up; the best equal chunks where it has none."""

    name: ClassVar[str] = "equation-3"
    source: ClassVar[str] = "paper 4, Eq. 3"
    complexity: ClassVar[str] = "O(knots + chunks); O(P N log N) without a root"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Solve the equation, and cut the prompt."""
        root = chunk_size(problem)
        if root is None:
            chunks = best_equal_chunks(problem, prepared, budget)
        else:
            chunks = equal_chunks(problem, round_up(min(root, float(problem.prompt_tokens))))
        return certify(chunks, budget, root=root)


def chunk_size(problem: PromptChunkingProblem) -> float | None:
    """Return the smallest X > 0 with X A / beta_up = (g(mu) + g(mu + X)) / P (Eq. 3), or None.

    The excess of the left over the right side starts below zero, or at zero if g(mu) is, is linear between the knots
    of g, and may cross zero several times where g is steep: the first crossing counts. With a single affine piece
    g0 + g1 m it is X = 2 (g0 + g1 mu) / (P A / beta_up - g1) if the denominator is positive, else there is none.
    """
    g, mu = problem.cloud_delay, problem.background_tokens
    rate = problem.pipeline_length * problem.bytes_per_token / problem.uplink_bytes_per_second
    knots = [float(knot) - mu for knot in g.tokens if knot > mu]
    slopes = [float(slope) for knot, slope in zip(g.tokens[1:], g.slopes, strict=True) if knot > mu]
    if len(knots) > len(slopes):
        slopes.insert(0, 0.0)  # left of the first knot
    slopes.append(float(g.slopes[-1]))  # right of the last one
    start, delay = 0.0, g.at(mu)
    excess = -2.0 * delay
    for end, slope in zip([*knots, math.inf], slopes, strict=True):
        growth = rate - slope
        # towards zero, from either side; at the start it is zero only at X = 0, which is no size
        if excess * growth < 0 and abs(excess) <= abs(growth) * (end - start):
            return start - excess / growth
        if end < math.inf:
            excess += growth * (end - start)
            start = end
    return None


def round_up(size: float) -> int:
    """Return the integer above; the nearest one if rounding alone keeps the size from it."""
    nearest = round(size)
    return nearest if abs(size - nearest) <= 1e-12 * max(1.0, size) else math.ceil(size)
