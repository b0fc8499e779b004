"""Solution methods for `prompt-chunking` problems (paper 4, Sec. 3.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from specopt.models.prompt_chunking.problem import PromptChunkingPlan, PromptChunkingProblem
from specopt.solvers.auto import Auto
from specopt.solvers.prompt_chunking.baselines import (
    BASELINES,
    BestEqual,
    Whole,
    equal_chunks,
)
from specopt.solvers.prompt_chunking.brute_force import BruteForceChunking
from specopt.solvers.prompt_chunking.deadline import Deadline
from specopt.solvers.prompt_chunking.equation_3 import Equation3
from specopt.solvers.prompt_chunking.exact import ExactChunking
from specopt.solvers.prompt_chunking.method import plan_of
from specopt.solvers.prompt_chunking.milp import MilpChunking


@dataclass(frozen=True)
class AutoChunking(Auto):
    """The default method, which runs `exact`, and `deadline` if that finds no optimum."""

    solves = PromptChunkingProblem
    order = (ExactChunking, Deadline)
    instead = (Equation3, Whole)

    def repaired(
        self, problem: PromptChunkingProblem, plan: PromptChunkingPlan
    ) -> PromptChunkingPlan:
        """Return a plan for this problem with the chunk boundaries of `plan`.

        Boundaries beyond the end of the prompt are removed, and the last chunk ends at the end of
        the prompt.
        """
        ends = np.unique(np.minimum(np.cumsum(plan.chunks), problem.prompt_tokens))
        ends[-1] = problem.prompt_tokens
        return plan_of(np.diff(ends, prepend=0))

    def plain_plans(self, problem: PromptChunkingProblem) -> Iterator[PromptChunkingPlan]:
        """Yield plans with about 2, 4, 8, ..., 256 equal chunks."""
        for count in (2**k for k in range(1, 9)):
            yield plan_of(equal_chunks(problem, -(-problem.prompt_tokens // count)))


METHODS = (
    AutoChunking,
    Deadline,
    ExactChunking,
    Equation3,
    BestEqual,
    BruteForceChunking,
    *BASELINES,
    MilpChunking,
)
