"""The method `water-level` for `draft-allocation` problems, whose running time does not depend on
the budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.draft_allocation.problem import DraftAllocationProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_allocation.method import DraftAllocationMethod, certify, offer_first_plan
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class WaterLevel(DraftAllocationMethod):
    """A water-filling method that allocates all tokens whose marginal value exceeds a level, called
    the water level.

    Newton's method finds a level that about C marginal values exceed, where C is the budget. Client
    i has floor(log(level / w_i) / log a_i) marginal values above the level. The method `greedy`
    would allocate these tokens before all others, so `water-level` is exact even if the level is
    only approximate. Counts that rounding could change are decided by comparing products. A heap
    then adds the missing tokens or removes the excess. The plan equals `greedy`'s plan, including
    ties. For a direct compiled call, see `specopt.solvers.draft_allocation.fast`.
    """

    name = "water-level"
    exact = True
    source = "own; paper 5, Eq. 5, by the Lagrange multiplier of its budget"
    guarantee = "optimal"
    complexity = "O(N log N), whatever the budget"

    def run(self, problem: DraftAllocationProblem, budget: Budget) -> Outcome:
        """Compute an optimal allocation with a single call of the compiled kernel."""
        offer_first_plan(problem, budget)
        kernels = budget.load("draft_allocation.water_level")
        drafts = np.empty(problem.clients, np.int64)
        kernels.allocate(
            problem.weights, problem.acceptance_rates, problem.budget_tokens, problem.caps, drafts
        )
        return certify(problem, drafts, budget)
