"""Hypothesis strategies for `continuous-serving` problems and plans.

Tasks are drawn as for `serving-latency`. Arrival times, regrouping and one of the two objectives
are drawn in addition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from specopt.kinds.columns import lists_of
from specopt.kinds.serving_latency import strategies as serving_latency
from specopt.kinds.serving_latency.strategies import magnitudes
from specopt.models.continuous_serving.problem import (
    ContinuousServingPlan,
    ContinuousServingProblem,
    Phase,
)


@st.composite
def problems(
    draw: st.DrawFn,
    /,
    *,
    tasks: tuple[int, int] = (1, 3),
    max_output: int = 4,
    max_length: int = 2,
    **kwargs: Any,
) -> ContinuousServingProblem:
    """Draw a valid problem.

    `kwargs` are passed to the strategy `problems` for `serving-latency`.
    """
    sizes: dict[str, Any] = {"tasks": tasks, "max_output": max_output, "max_length": max_length}
    served = draw(serving_latency.served_problems(**sizes, **kwargs))
    arrivals = None
    if draw(st.integers(0, 2)) == 0:
        arrivals = draw(magnitudes(-4, 2)) * np.array(
            draw(lists_of(st.integers(0, 20), served.tasks)), np.float64
        )
    return ContinuousServingProblem(
        **served.shared_fields(),
        arrival_seconds=arrivals,
        objective=draw(st.sampled_from(["makespan", "mean_latency"])),
        regroup_seconds=draw(st.sampled_from([0.0, 1e-4, 0.5])),
        min_speculation_length=draw(st.sampled_from([1, 1, 0])),
    )


@st.composite
def plans(draw: st.DrawFn, problem: ContinuousServingProblem) -> ContinuousServingPlan:
    """Draw a plan that contains every task once in each phase.

    Draft lengths are specified for the whole plan, for a phase or for each batch.
    """
    plan = draw(serving_latency.plans(problem))
    length = st.integers(problem.min_speculation_length, problem.max_speculation_length or 1)
    phases = []
    for first in [1, *sorted(draw(st.sets(st.integers(2, 9), max_size=3)))]:
        batches = draw(serving_latency.plans(problem)).batches
        each = lists_of(length, len(batches)).map(tuple)
        given = draw(st.none() | length | each) if plan.speculation_length else None
        phases.append(Phase(first_step=first, batches=batches, speculation_length=given))
    return ContinuousServingPlan(
        phases=tuple(phases),
        speculation_length=plan.speculation_length,
        bandwidth_share=plan.bandwidth_share,
        mechanism=plan.mechanism,
    )
