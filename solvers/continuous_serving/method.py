"""Code shared by the methods for `continuous-serving` problems: applicability conditions and
initial plans.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from specopt.models.continuous_serving.problem import ContinuousServingProblem, Phase
from specopt.solvers.budget import Budget
from specopt.solvers.continuous_serving.prepare import Prepared
from specopt.solvers.method import Condition
from specopt.solvers.serving_method import MAX_LENGTHS, ServingMethod, quick_batches

_SECONDS_PER_RUN = 5e-8  # to judge one decoding step of one task

TOGETHER = Condition(
    "tasks that arrive together",
    lambda method, problem: None if problem.arrival_seconds is None else "arrivals",
)
ALWAYS_DRAFTING = Condition(
    "drafts in every step",
    lambda method, problem: (
        "steps without drafts"
        if problem.min_speculation_length == 0 and problem.mechanism != "autoregressive"
        else None
    ),
)


@dataclass(frozen=True)
class ContinuousServingMethod(ServingMethod):
    """Base class of the methods for `continuous-serving` problems."""

    solves = ContinuousServingProblem

    def seconds_needed(self, problem: ContinuousServingProblem) -> dict[str, float]:
        """Estimate how long it takes to evaluate one plan, in seconds.

        The estimate is proportional to the number of decoding steps, summed over all tasks, at the
        longest speculation length.
        """
        steps = np.stack(problem.scenarios) / problem.tokens_per_step(
            problem.max_speculation_length or 0
        )
        return {"tasks times decoding steps": _SECONDS_PER_RUN * float(steps.sum())}


def offer_first_plan(prepared: Prepared, budget: Budget) -> None:
    """Record the best trivial plan in the budget.

    In one kind of trivial plan, batches are as large as memory allows for the final output lengths.
    In the other kind, each task is in a separate batch, which is feasible whenever a plan exists.
    For each kind, the speculation length is increased as long as the plan improves.
    """
    problem = prepared.problem
    batches = quick_batches(prepared) if problem.output_lengths != "predicted" else None
    alone = [[task] for task in range(prepared.tasks)]
    for some in (batches, alone) if batches else (alone,):
        parts = [tuple(prepared.order[batch].tolist()) for batch in some]
        before = math.inf
        for length in prepared.served_lengths[:MAX_LENGTHS]:
            phase = Phase(first_step=1, batches=parts, speculation_length=length)
            plan = prepared.plan([phase], prepared.lengths[0])
            if problem.violations(plan) or (found := budget.offer(plan)) >= before:
                break
            before = found
