"""The method `brute-force` for `prompt-chunking`.

It evaluates every way to split the prompt into chunks. The other methods are tested against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from specopt.models.prompt_chunking.problem import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.method import PromptChunkingMethod, offer_first_plan, plan_of


@dataclass(frozen=True)
class BruteForceChunking(PromptChunkingMethod):
    """Enumerate all ways to split the prompt into chunks."""

    name = "brute-force"
    exact = True
    source = "enumeration of the event model, paper 4"
    guarantee = "optimal"
    complexity = "O(2^M M P), M the places where a chunk may end"
    max_size = 16

    def run(self, problem: PromptChunkingProblem, budget: Budget) -> Outcome:
        """Evaluate every plan, in order of increasing number of chunks."""
        offer_first_plan(problem, budget)
        N = problem.prompt_tokens
        inner = range(problem.grid_tokens or 1, N, problem.grid_tokens or 1)
        judged = 1
        for cuts in range(1, min(problem.chunk_limit, len(inner) + 1)):
            for ends in combinations(inner, cuts):
                budget.check()
                budget.offer(plan_of(np.diff([0, *ends, N])))
                judged += 1
        return Outcome(plan=budget.incumbent, bound=budget.objective, stats={"judged": judged})
