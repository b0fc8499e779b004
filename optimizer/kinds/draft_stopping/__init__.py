"""Declaration of the kind `draft-stopping` (paper 2), which uses the scores of a rejection
predictor to decide when to stop drafting.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from specopt.instances.draft_stopping import FAMILIES
from specopt.kinds.kind import Kind, Simulator, Uncertainty, added, faster
from specopt.models.draft_stopping.problem import (
    DraftStoppingPlan,
    DraftStoppingProblem,
)
from specopt.solvers.draft_stopping import METHODS
from specopt.solvers.draft_stopping.formulation import FORMULATION


def _vary(
    problem: DraftStoppingProblem, plan: DraftStoppingPlan, rates: Any, scale: float
) -> tuple[DraftStoppingProblem, DraftStoppingPlan]:
    rows = np.broadcast_to(rates, (len(problem.rounds), problem.max_draft_tokens))
    rounds = tuple(
        dataclasses.replace(one, acceptance_rate=row)
        for one, row in zip(problem.rounds, rows, strict=True)
    )
    return dataclasses.replace(problem, rounds=rounds), plan


KIND = Kind(
    problem=DraftStoppingProblem,
    methods=METHODS,
    formulation=FORMULATION,
    families=FAMILIES,
    rows=lambda plan: (
        {"node": node, **{f"score_{score}": to for score, to in enumerate(goes)}}
        for node, goes in enumerate(plan.next.rows.tolist())
    ),
    perturbations=(
        added("max_draft_tokens", "+1 maximum draft length", 1),
        faster("draft_seconds_per_token", "drafting"),
        faster("round_seconds", "round"),
    ),
    uncertainty=Uncertainty(
        vary=_vary,
        shape=lambda problem: (len(problem.rounds), problem.max_draft_tokens),
        one=True,
        # a plan drafts more if more tokens are accepted; either end may thus be the worst case
        worst=lambda problem, plan, interval, scale: (list(interval), False),
    ),
    simulator=Simulator(
        world=DraftStoppingProblem, module="specopt.solvers.draft_stopping.simulate"
    ),
)
