"""Declaration of the kind `draft-allocation` (paper 5), which determines how many tokens each
client drafts in a round.
"""

from __future__ import annotations

from dataclasses import replace

from specopt.instances.draft_allocation import FAMILIES
from specopt.kinds.kind import ROUNDS_OF_CLIENTS, Kind, Uncertainty
from specopt.models.draft_allocation.problem import DraftAllocationProblem
from specopt.solvers.draft_allocation import METHODS
from specopt.solvers.draft_allocation.milp import FORMULATION

KIND = Kind(
    problem=DraftAllocationProblem,
    methods=METHODS,
    formulation=FORMULATION,
    families=FAMILIES,
    rows=lambda plan: (
        {"client": i, "draft_tokens": tokens} for i, tokens in enumerate(plan.draft_tokens.tolist())
    ),
    perturbations=ROUNDS_OF_CLIENTS,
    uncertainty=Uncertainty(
        vary=lambda problem, plan, rates, scale: (replace(problem, acceptance_rates=rates), plan),
        shape=lambda problem: problem.acceptance_rates.shape,
    ),
)
