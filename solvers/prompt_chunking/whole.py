"""One chunk."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.prompt_chunking import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.families import Family
from specopt.solvers.prompt_chunking.method import certify
from specopt.solvers.prompt_chunking.prepare import Prepared


@dataclass(frozen=True)
class Whole(Family):
    """One chunk."""

    name = "whole"
    source = "U-shaped inference, a baseline of paper 4"
    complexity = "O(1), the bound O(N)"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Take everything at once."""
        return certify([problem.prompt_tokens], budget)
