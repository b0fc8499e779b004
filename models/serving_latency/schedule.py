"""Start and end times of drafting and verifying in one decoding step, for charts and tables.

The times follow Eq. 13-20 of paper 1. The judge does not use this module.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.serving_latency.problem import (
    ServingLatencyPlan,
    ServingLatencyProblem,
    static_batches,
)


@dataclass(frozen=True)
class Slot:
    """The draft and verify times of one batch in one decoding step, in seconds since the start of
    the step.

    Parameters
    ----------
    batch
        Index of the batch in the plan, counted from 0.
    tasks
        Number of tasks in the batch.
    draft
        Start and end of drafting, or None for autoregressive decoding.
    verify
        Start and end of verification.
    """

    batch: int
    tasks: int
    draft: tuple[float, float] | None
    verify: tuple[float, float]


def steps_per_batch(problem: ServingLatencyProblem, plan: ServingLatencyPlan) -> list[int]:
    """Return the number of decoding steps until each batch finishes (Eq. 8)."""
    return [
        int(batch.steps[0])
        for batch in static_batches(problem, plan, problem.planned_output_tokens[None])
    ]


def step_schedule(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, step: int
) -> list[Slot]:
    """Return the draft and verify times of all batches that have not finished before a decoding
    step. Steps are counted from 1, and step 1 is the prefill.

    Raises
    ------
    InvalidInput
        If the plan violates the problem's constraints, or if no batch runs in this step.
    """
    violations = problem.violations(plan)
    if violations:
        raise InvalidInput(f"plan: {violations[0]}")
    steps = steps_per_batch(problem, plan)
    if not 1 <= step <= max(steps):
        raise InvalidInput(f"step: expected 1 to {max(steps)}, got {step}")
    mechanism = problem.mechanism_of(plan)
    slots = []
    draft_free = verify_free = 0.0
    for position, batch in enumerate(plan.batches):
        if step > steps[position]:
            continue  # the batch has left the pipeline (Eq. 21)
        draft_time, verify_time = stage_seconds(problem, plan, batch, step)
        draft = None
        ready = verify_free
        if mechanism != "autoregressive":
            start = verify_free if mechanism == "sequential" else draft_free
            draft_free = start + draft_time
            draft = (start, draft_free)
            ready = max(draft_free, verify_free)  # Eq. 20
        verify_free = ready + verify_time
        slots.append(Slot(position, len(batch), draft, (ready, verify_free)))
    return slots


def stage_seconds(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, batch: tuple[int, ...], step: int
) -> tuple[float, float]:
    """Return the durations of a batch's draft stage and verify stage in a decoding step, in seconds
    (Eq. 13, 14, 18, 19).
    """
    length = plan.speculation_length
    tokens = problem.tokens_per_step(length)[list(batch)]
    reached = np.array([(problem.input_tokens[list(batch)] + (step - 1) * tokens).max()])
    draft, verify = problem.stage_seconds(len(batch), reached, length, step == 1)
    return float(draft[0]), float(verify[0])
