"""Declaration of the kind `continuous-serving`, which extends paper 1. Batches may change between
decoding steps, and tasks arrive over time.
"""

from __future__ import annotations

from collections.abc import Iterator

from specopt.instances.continuous_serving import FAMILIES
from specopt.instances.continuous_serving.from_trace import FROM_TRACE
from specopt.instances.runtimes.fields import of_serving_latency
from specopt.kinds.kind import Kind, Row, Simulator, Uncertainty
from specopt.kinds.serving import PERTURBATIONS, UNCERTAINTY, choices, row
from specopt.models.continuous_serving.problem import (
    ContinuousServingPlan,
    ContinuousServingProblem,
)
from specopt.models.errors import InvalidInput
from specopt.solvers.continuous_serving import METHODS


def _rows(plan: ContinuousServingPlan) -> Iterator[Row]:
    tasks = len(plan.bandwidth_share)
    for phase in plan.phases:
        lengths = phase.lengths(plan.speculation_length)
        for batch, (members, length) in enumerate(zip(phase.batches, lengths, strict=True)):
            for position, task in enumerate(members):
                if not 0 <= task < tasks:
                    raise InvalidInput(f"plan.phases: expected tasks 0 to {tasks - 1}, got {task}")
                yield {"first_step": phase.first_step, **row(plan, task, batch, position, length)}


KIND = Kind(
    problem=ContinuousServingProblem,
    methods=METHODS,
    choices=choices,
    families=FAMILIES,
    rows=_rows,
    perturbations=PERTURBATIONS,
    uncertainty=Uncertainty(
        **UNCERTAINTY,
        # A step may end before the next task arrives, so that this task waits less or joins another
        # batch. Longer outputs can therefore improve a plan.
        longer_is_worse=lambda problem: problem.arrival_seconds is None,
        # Without drafts, the acceptance rate has no effect.
        worst=lambda problem, plan, interval, scale: (
            ([interval[0]], True)
            if problem.mechanism_of(plan) == "autoregressive"
            else (list(interval), False)
        ),
    ),
    simulator=Simulator(
        world=ContinuousServingProblem, module="specopt.solvers.continuous_serving.simulate"
    ),
    from_trace=FROM_TRACE,
    from_runtimes=of_serving_latency,
)
