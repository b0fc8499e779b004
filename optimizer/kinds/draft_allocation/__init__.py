"""`draft-allocation`: how many tokens each client drafts this round (paper 5)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from specopt.instances.draft_allocation import FAMILIES
from specopt.kinds.kind import Kind, Row, Uncertainty, likelier, more
from specopt.models.draft_allocation.problem import DraftAllocationPlan, DraftAllocationProblem
from specopt.solvers.draft_allocation import METHODS
from specopt.solvers.draft_allocation.milp import FORMULATION


def _rows(plan: DraftAllocationPlan) -> Iterator[Row]:
    return (
        {"client": i, "draft_tokens": tokens} for i, tokens in enumerate(plan.draft_tokens.tolist())
    )


def _vary(
    problem: DraftAllocationProblem, plan: DraftAllocationPlan, rates: Any, scale: float
) -> tuple[DraftAllocationProblem, DraftAllocationPlan]:
    return dataclasses.replace(problem, acceptance_rates=rates), plan


PERTURBATIONS = (
    more("budget_tokens", "+1 token verified per round", lambda tokens: tokens + 1),
    more("max_draft_tokens", "+1 draft token of each client", lambda tokens: tokens + 1),
    likelier("acceptance_rates", 0.999),
)


KIND = Kind(
    problem=DraftAllocationProblem,
    methods=METHODS,
    formulation=FORMULATION,
    families=FAMILIES,
    rows=_rows,
    perturbations=PERTURBATIONS,
    view="specopt.kinds.draft_allocation.view",
    strategies="specopt.kinds.draft_allocation.strategies",
    relations="specopt.kinds.draft_allocation.relations",
    uncertainty=Uncertainty(vary=_vary, shape=lambda problem: problem.acceptance_rates.shape),
)
