"""Declaration of the kind `fair-goodput` (paper 5), which determines fair long-run rates for
clients that share a verifier.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from specopt.instances.fair_goodput import FAMILIES, WORKLOADS
from specopt.instances.fair_goodput.from_deployment import fair_goodput
from specopt.kinds.kind import ROUNDS_OF_CLIENTS, Kind, Simulator, Uncertainty, faster
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem
from specopt.models.fair_goodput.workload import GoodputWorkload
from specopt.solvers.fair_goodput import METHODS
from specopt.solvers.fair_goodput.convex import FORMULATION
from specopt.solvers.fair_goodput.policies import POLICIES


def _vary(
    problem: FairGoodputProblem, plan: FairGoodputPlan, rates: Any, scale: float
) -> tuple[FairGoodputProblem, FairGoodputPlan]:
    """Return the problem with other acceptance rates, together with the adapted plan.

    The schedule is unchanged, but the plan's declared goodput is updated. Otherwise, the judge
    would report the old goodput as a violation.
    """
    variant = dataclasses.replace(problem, acceptance_rates=rates)
    goodput, tokens = variant.realised(plan.schedule)
    return variant, dataclasses.replace(plan, goodput=goodput, mean_draft_tokens=tokens)


KIND = Kind(
    problem=FairGoodputProblem,
    methods=METHODS,
    formulation=FORMULATION,
    families=FAMILIES,
    from_deployment=fair_goodput,
    rows=lambda plan: (
        {
            "entry": entry,
            "share": share,
            **{f"client_{i}": count for i, count in enumerate(tokens.tolist())},
        }
        for entry, (share, tokens) in enumerate(plan.schedule.allocations())
    ),
    perturbations=(
        *ROUNDS_OF_CLIENTS,
        faster("draft_seconds_per_token", "drafting"),
        faster("network_seconds", "network"),
        faster("verify_overhead_seconds", "overhead of verification"),
        faster("verify_seconds_per_token", "verification"),
    ),
    uncertainty=Uncertainty(vary=_vary, shape=lambda problem: problem.acceptance_rates.shape),
    simulator=Simulator(
        world=GoodputWorkload,
        module="specopt.solvers.fair_goodput.simulate",
        policies=POLICIES,
        workloads=WORKLOADS,
    ),
)
