"""Declaration of the kind `draft-control` (paper 3), which chooses a draft length and a
quantisation resolution for each channel state.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from specopt.instances.draft_control import FAMILIES
from specopt.kinds.kind import Kind, Simulator, Uncertainty, faster, more, of_each
from specopt.models.draft_control.problem import DraftControlPlan, DraftControlProblem
from specopt.solvers.draft_control import METHODS
from specopt.solvers.draft_control.linear_program import FORMULATION
from specopt.solvers.draft_control.policies import POLICIES


def _vary(
    problem: DraftControlProblem, plan: DraftControlPlan, rates: Any, scale: float
) -> tuple[DraftControlProblem, DraftControlPlan]:
    states = tuple(
        dataclasses.replace(state, acceptance_rates=row)
        for state, row in zip(problem.states, rates, strict=True)
    )
    return dataclasses.replace(problem, states=states), plan


KIND = Kind(
    problem=DraftControlProblem,
    methods=METHODS,
    formulation=FORMULATION,
    families=FAMILIES,
    rows=lambda plan: (
        {"state": state, "draft_length": choice.draft_length, "resolution": choice.resolution}
        for state, choice in enumerate(plan.policy)
    ),
    perturbations=(
        more(
            "states",
            "+1 Mbit/s uplink in every state",
            of_each("uplink_bits_per_second", lambda rate: rate + 1e6),
        ),
        more(
            "draft_lengths", "+1 maximum draft length", lambda lengths: (lengths[0], lengths[1] + 1)
        ),
        faster("draft_seconds_per_token", "drafting"),
        faster("verify_seconds", "verification"),
    ),
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
