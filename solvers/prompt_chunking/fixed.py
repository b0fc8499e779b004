"""Chunks of a given size, the last takes the rest; the size goes up to the grid and to what the cap needs."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.fields import PositiveInt
from specopt.models.prompt_chunking import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.families import Family, equal_chunks
from specopt.solvers.prompt_chunking.method import certify
from specopt.solvers.prompt_chunking.prepare import Prepared


@dataclass(frozen=True)
class Fixed(Family):
    """Chunks of a given size, the last takes the rest; the size goes up to the grid and to what the cap needs.

    Parameters
    ----------
    chunk_tokens
        Tokens per chunk.
    """

    chunk_tokens: PositiveInt = 128

    name = "fixed"
    source = "chunked prefill with a constant size; U-Sarathi's sizes in paper 4 are 128 and 256"
    complexity = "O(N)"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Cut the prompt."""
        chunks = equal_chunks(problem, self.chunk_tokens)
        return certify(chunks, budget, chunk_tokens=int(chunks[0]))
