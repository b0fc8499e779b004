"""`draft-control`: draft length and quantisation resolution per state of the channel (paper 3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from specopt.instances.draft_control import FAMILIES
from specopt.kinds.kind import Kind, Row
from specopt.kinds.simulator import Simulator
from specopt.kinds.uncertainty import Uncertainty
from specopt.models.draft_control import DraftControlPlan, DraftControlProblem
from specopt.solvers.draft_control import METHODS
from specopt.solvers.draft_control.policies import POLICIES


def _rows(plan: DraftControlPlan) -> Iterator[Row]:
    for state, choice in enumerate(plan.policy):
        yield {"state": state, "draft_length": choice.draft_length, "resolution": choice.resolution}


def _vary(
    problem: DraftControlProblem, plan: DraftControlPlan, rates: Any, scale: float
) -> tuple[DraftControlProblem, DraftControlPlan]:
    states = tuple(
        dataclasses.replace(state, acceptance_rates=row) for state, row in zip(problem.states, rates, strict=True)
    )
    return dataclasses.replace(problem, states=states), plan


KIND = Kind(
    problem=DraftControlProblem,
    methods=METHODS,
    families=FAMILIES,
    rows=_rows,
    view="specopt.views.draft_control",
    uncertainty=Uncertainty(
        vary=_vary, shape=lambda problem: (len(problem.states), len(problem.resolutions)), one=True
    ),
    simulator=Simulator(
        world=DraftControlProblem,
        module="specopt.solvers.draft_control.simulate",
        policies=POLICIES,
        workloads=FAMILIES,
    ),
)
