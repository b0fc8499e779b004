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
    """Find the level that C marginals exceed by Newton's method, then correct for rounding by a few
    tokens.

    Exact: client i has floor(log(level / w_i) / log a_i) marginals above a level, and whatever is
    above a level comes first in the order in which `greedy` takes tokens, however rough the level.
    Counts that rounding could change are settled by comparing products. A heap then adds or takes
    away the tokens by which the sum misses the budget. The plan is the plan of `greedy`, ties
    included; see `specopt.solvers.draft_allocation.fast` for a bare call.
    """

    name = "water-level"
    exact = True
    source = "own; paper 5, Eq. 5, by the Lagrange multiplier of its budget"
    guarantee = "optimal"
    complexity = "O(N log N), whatever the budget"

    def run(self, problem: DraftAllocationProblem, budget: Budget) -> Outcome:
        """Make one compiled call."""
        offer_first_plan(problem, budget)
        kernels = budget.load("draft_allocation.water_level")
        drafts = np.empty(problem.clients, np.int64)
        kernels.allocate(
            problem.weights, problem.acceptance_rates, problem.budget_tokens, problem.caps, drafts
        )
        return certify(problem, drafts, budget)
