"""Hypothesis strategies for `continuous-serving`: tasks of `serving-latency`, arrivals, regrouping,
both objectives.
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
    """A problem; the other parameters are those of `serving_latency.problems` but for `rounds`."""
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
    """Any plan: every task once in each phase, lengths of the plan, of a phase, or of each
    batch.
    """
    plan = draw(serving_latency.plans(problem))
    firsts = [1, *sorted(draw(st.sets(st.integers(2, 9), max_size=3)))]
    phases = []
    for first in firsts:
        batches = draw(serving_latency.plans(problem)).batches
        phase = {"first_step": first, "batches": batches}
        if plan.speculation_length:
            length = st.integers(
                problem.min_speculation_length, problem.max_speculation_length or 1
            )
            each = lists_of(length, len(batches)).map(tuple)
            phase["speculation_length"] = draw(st.none() | length | each)
        phases.append({name: value for name, value in phase.items() if value is not None})
    data = plan.to_dict() | {"phases": phases}
    data.pop("batches")
    return ContinuousServingPlan.from_dict(data)


@st.composite
def problems_with_plans(
    draw: st.DrawFn, /, **kwargs: Any
) -> tuple[ContinuousServingProblem, ContinuousServingPlan]:
    """A problem and one of its plans."""
    problem = draw(problems(**kwargs))
    return problem, draw(plans(problem))
