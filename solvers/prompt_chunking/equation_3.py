"""The method `equation-3` for `prompt-chunking`.

It uses equal chunks of the size in Eq. 3 of paper 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from specopt.models.prompt_chunking.problem import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.baselines import Family, best_equal_chunks, equal_chunks
from specopt.solvers.prompt_chunking.method import certify
from specopt.solvers.prompt_chunking.prepare import Prepared


@dataclass(frozen=True)
class Equation3(Family):
    """Use equal chunks of the size that paper 4 recommends.

    The size is the root of Eq. 3, rounded up. If there is no root, the best equal chunks are used.
    """

    name = "equation-3"
    source = "paper 4, Eq. 3"
    complexity = "O(knots + chunks); O(P N log N) without a root"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Solve Eq. 3 for the chunk size, and cut the prompt into equal chunks."""
        root = chunk_size(problem, budget.load("prompt_chunking.simulation"))
        if root is None:
            chunks = best_equal_chunks(problem, prepared, budget)
        else:
            chunks = equal_chunks(problem, round_up(min(root, float(problem.prompt_tokens))))
        return certify(chunks, budget, root=root)


def chunk_size(problem: PromptChunkingProblem, kernels: Any) -> float | None:
    """Return the chunk size of Eq. 3, or None if Eq. 3 has no root.

    The size is the smallest X > 0 with X A / beta_up = (g(mu) + g(mu + X)) / P.
    """
    g = problem.cloud_delay
    root: float = kernels.balanced_chunk(
        g.tokens.tolist(),
        g.seconds.tolist(),
        problem.background_tokens,
        problem.bytes_per_token / problem.uplink_bytes_per_second,
        problem.pipeline_length,
    )
    return root if root < math.inf else None


def round_up(size: float) -> int:
    """Round up to an integer, tolerating rounding errors slightly above an integer."""
    nearest = round(size)
    return nearest if abs(size - nearest) <= 1e-12 * max(1.0, size) else math.ceil(size)
