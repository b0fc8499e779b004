"""Best equal: the best size for chunks of one size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.prompt_chunking import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.equal import best_equal_chunks
from specopt.solvers.prompt_chunking.method import PromptChunkingMethod, certify, prepare_and_bound


@dataclass(frozen=True)
class BestEqual(PromptChunkingMethod):
    """Chunks of the best single size, the last takes the rest."""

    name: ClassVar[str] = "best-equal"
    source: ClassVar[str] = "enumeration of all sizes; what Eq. 3 of paper 4 approximates"
    guarantee: ClassVar[str] = "the best equal chunks; a certified gap"
    complexity: ClassVar[str] = "O(P N log N)"

    def run(self, problem: PromptChunkingProblem, budget: Budget) -> Outcome:
        """Try every size."""
        chunks = best_equal_chunks(problem, prepare_and_bound(problem, budget), budget)
        return certify(chunks, budget, chunk_tokens=int(chunks[0]))
