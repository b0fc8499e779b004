"""Chunks of the best single size, the last takes the rest."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.prompt_chunking import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.families import Family, best_equal_chunks
from specopt.solvers.prompt_chunking.method import certify
from specopt.solvers.prompt_chunking.prepare import Prepared


@dataclass(frozen=True)
class BestEqual(Family):
    """Chunks of the best single size, the last takes the rest."""

    name = "best-equal"
    source = "enumeration of all sizes; what Eq. 3 of paper 4 approximates"
    guarantee = "the best equal chunks; a certified gap"
    complexity = "O(P N log N)"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Try every size."""
        chunks = best_equal_chunks(problem, prepared, budget)
        return certify(chunks, budget, chunk_tokens=int(chunks[0]))
