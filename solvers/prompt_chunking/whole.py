"""Whole: the prompt as one chunk, as U-shaped inference has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.prompt_chunking import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.method import PromptChunkingMethod, certify, prepare_and_bound


@dataclass(frozen=True)
class Whole(PromptChunkingMethod):
    """One chunk."""

    name: ClassVar[str] = "whole"
    source: ClassVar[str] = "U-shaped inference, a baseline of paper 4"
    guarantee: ClassVar[str] = "none; a certified gap"
    complexity: ClassVar[str] = "O(1), the bound O(N)"

    def run(self, problem: PromptChunkingProblem, budget: Budget) -> Outcome:
        """Take everything at once."""
        prepare_and_bound(problem, budget)
        return certify([problem.prompt_tokens], budget)
