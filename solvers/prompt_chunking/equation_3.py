"""Equal chunks by Eq. 3 of paper 4."""

from __future__ import annotations

import math
from dataclasses import dataclass

from specopt.models.prompt_chunking.problem import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.baselines import Family, equal_chunks
from specopt.solvers.prompt_chunking.best_equal import best_equal_chunks
from specopt.solvers.prompt_chunking.method import certify
from specopt.solvers.prompt_chunking.prepare import Prepared


@dataclass(frozen=True)
class Equation3(Family):
    """The paper's equal chunks: the root of Eq. 3, rounded up; the best equal chunks where it has
    none.
    """

    name = "equation-3"
    source = "paper 4, Eq. 3"
    complexity = "O(knots + chunks); O(P N log N) without a root"

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

    The excess of the left over the right side starts below zero, or at zero if g(mu) is zero. It is
    linear between the knots of g, and may cross zero several times where g is steep: the first
    crossing counts. With a single affine piece g0 + g1 m it is X = 2 (g0 + g1 mu) / (P A / beta_up
    - g1) if the denominator is positive, else there is none.
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
