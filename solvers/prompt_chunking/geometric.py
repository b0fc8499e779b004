"""The best geometric sequence over its length and its ratio."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.fields import PositiveInt
from specopt.models.prompt_chunking import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.families import Family
from specopt.solvers.prompt_chunking.method import call, certify
from specopt.solvers.prompt_chunking.prepare import Prepared, work_space


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

    name = "geometric"
    source = "own; paper 4, Sec. 3.3, with chunks that shrink"
    complexity = "O(P max_length^2)"

    def cut(self, problem: PromptChunkingProblem, prepared: Prepared, budget: Budget) -> Outcome:
        """Search the ratio for each length."""
        kernels = budget.load("prompt_chunking_families")
        most = min(self.max_length, prepared.most)
        bounds = np.zeros(most + 1, np.int64)
        work = work_space(prepared, min(most, prepared.cells))
        count = call(budget, kernels.best_geometric, most, prepared.prompt, work, bounds, partial=True)
        return certify(prepared.chunks(bounds[: count + 1]), budget)
