"""The method `water-level` for `draft-allocation`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.draft_allocation.problem import DraftAllocationProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_allocation.method import DraftAllocationMethod, certify, offer_first_plan
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class WaterLevel(DraftAllocationMethod):
    """Find a level that about C marginals exceed, using Newton's method, then correct the count.

    Client i has floor(log(level / w_i) / log a_i) marginals above a level. However rough the level
    is, `greedy` would allocate these tokens before all others, so the method is exact. Counts that
    rounding could change are decided by comparing products. A heap then adds the missing tokens or
    removes the excess. The plan equals `greedy`'s plan, including ties. For a direct compiled
    call, see `specopt.solvers.draft_allocation.fast`.
    """

    name = "water-level"
    exact = True
    source = "specopt; paper 5, Eq. 5, by the Lagrange multiplier of its budget"
    guarantee = "optimal"
    complexity = "O(N log N), whatever the budget"

    def run(self, problem: DraftAllocationProblem, budget: Budget) -> Outcome:
        """Compute the allocation with one call of the compiled kernel."""
        offer_first_plan(problem, budget)
        kernels = budget.load("draft_allocation.water_level")
        drafts = np.empty(problem.clients, np.int64)
        kernels.allocate(
            problem.weights, problem.acceptance_rates, problem.budget_tokens, problem.caps, drafts
        )
        return certify(problem, drafts, budget)
