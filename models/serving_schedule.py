"""When each batch is drafted and verified in one decoding step, for pictures and tables.

The times follow Eq. 13-20 of paper 1 from the primitives of `specopt.models`; the judge decides, this only shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.acceptance import decoding_steps, expected_tokens_per_step
from specopt.models.decoder import Decoder
from specopt.models.errors import InvalidInput
from specopt.models.runtime import Runtime
from specopt.models.serving_latency import ServingLatencyPlan, ServingLatencyProblem


@dataclass(frozen=True)
class Slot:
    """One batch in one decoding step: when it is drafted and verified, in seconds since the step began.

    Parameters
    ----------
    batch
        Position in the plan, from 0.
    tasks
        Number of tasks in the batch.
    draft, verify
        Start and end; `draft` is None where nothing is drafted (autoregressive decoding).
    """

    batch: int
    tasks: int
    draft: tuple[float, float] | None
    verify: tuple[float, float]


def steps_per_batch(problem: ServingLatencyProblem, plan: ServingLatencyPlan) -> list[int]:
    """Return the decoding steps that each batch takes (Eq. 8)."""
    outputs = problem.planned_output_tokens
    tokens = _tokens_per_step(problem, plan)
    return [decoding_steps(int(outputs[list(batch)].max()), tokens) for batch in plan.batches]


def step_schedule(problem: ServingLatencyProblem, plan: ServingLatencyPlan, step: int) -> list[Slot]:
    """Return the slots of the batches that still run at a decoding step; step 1 is the prefill.

    Raises
    ------
    InvalidInput
        If the plan violates the problem, or has no such step.
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
            continue  # it has left the pipeline (Eq. 21)
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


def _tokens_per_step(problem: ServingLatencyProblem, plan: ServingLatencyPlan) -> float:
    if problem.mechanism_of(plan) == "autoregressive":
        return 1.0
    assert problem.acceptance_rate is not None, "the problem has checked it"
    return expected_tokens_per_step(problem.acceptance_rate, plan.speculation_length)


def stage_seconds(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, batch: tuple[int, ...], step: int
) -> tuple[float, float]:
    """Return the draft and the verify time of a batch at one step (Eq. 13, 14, 18, 19)."""
    size, length = len(batch), plan.speculation_length
    padded = float(problem.input_tokens[list(batch)].max())
    before = padded + (step - 1) * _tokens_per_step(problem, plan) - 1  # tokens in the cache
    draft = 0.0
    if problem.mechanism_of(plan) != "autoregressive":
        for guess in range(1, length + 1):
            if step == 1 and guess == 1:
                draft += _pass_seconds(problem.draft, problem.draft_runtime, size, padded, padded, 1)
            else:
                draft += _pass_seconds(problem.draft, problem.draft_runtime, size, 1.0, before + guess, 1)
    new = padded + length if step == 1 else 1.0 + length
    total = padded + length if step == 1 else before + length + 1
    return draft, _pass_seconds(problem.verify, problem.verify_runtime, size, new, total, 1 + length)


def _pass_seconds(
    model: Decoder | None, runtime: Runtime | None, size: int, new: float, total: float, logits: int
) -> float:
    assert model is not None and runtime is not None, "the problem has checked them"
    work = model.flops_per_token * new + model.flops_per_token_pair * new * total + model.flops_per_logit * logits
    return float(runtime.seconds(size, np.asarray(work)))
