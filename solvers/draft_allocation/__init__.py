"""Methods for `draft-allocation` problems (paper 5, Eq. 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from specopt.models.draft_allocation.problem import DraftAllocationPlan, DraftAllocationProblem
from specopt.solvers.auto import Auto
from specopt.solvers.draft_allocation.brute_force import BruteForceAllocation
from specopt.solvers.draft_allocation.greedy import Greedy, take_largest
from specopt.solvers.draft_allocation.milp import MilpAllocation
from specopt.solvers.draft_allocation.water_level import WaterLevel

PLAIN_TOKENS = 50_000


@dataclass(frozen=True)
class AutoAllocation(Auto):
    """Default method for `draft-allocation` problems. It runs `water-level`, whose plan is proven
    optimal.
    """

    solves = DraftAllocationProblem
    order = (WaterLevel, Greedy)

    def repaired(
        self, problem: DraftAllocationProblem, plan: DraftAllocationPlan
    ) -> DraftAllocationPlan:
        """Adapt a plan to a problem that has changed. Clients keep their numbers of draft tokens,
        as far as the caps and the budget allow.
        """
        drafts = np.zeros(problem.clients, np.int64)
        kept = plan.draft_tokens[: problem.clients]
        drafts[: len(kept)] = np.minimum(kept, problem.caps[: len(kept)])
        before = np.cumsum(drafts) - drafts
        return DraftAllocationPlan(draft_tokens=np.clip(problem.budget_tokens - before, 0, drafts))

    def plain_plans(self, problem: DraftAllocationProblem) -> Iterator[DraftAllocationPlan]:
        """Yield a simple initial plan that needs no compiled code. It allocates at most
        `PLAIN_TOKENS` tokens, in order of decreasing marginal value.
        """
        drafts = [0] * problem.clients
        take_largest(problem, drafts, min(problem.budget_tokens, PLAIN_TOKENS), lambda: None)
        yield DraftAllocationPlan(draft_tokens=np.array(drafts, np.int64))


METHODS = (
    AutoAllocation,
    WaterLevel,
    Greedy,
    BruteForceAllocation,
    MilpAllocation,
)
