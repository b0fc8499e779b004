"""When each batch is drafted and verified: sums and order against the judge, one case by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from small_instances.serving_latency import by_hand
from strategies.serving_plans import fixed as problems_with_plans

from specopt import InvalidInput, ServingLatencyPlan, ServingLatencyProblem
from specopt.models.serving_latency.schedule import (
    Slot,
    stage_seconds,
    step_schedule,
    steps_per_batch,
)


@settings(max_examples=30)
@given(problems_with_plans(max_output=8))
def test_steps_add_up_to_the_judge(case: tuple[ServingLatencyProblem, ServingLatencyPlan]) -> None:
    """Tests that the ends of all steps sum to the judge's inference time, each slot as long as its
    stages take.
    """
    problem, plan = case
    problem = replace(problem, draft_memory_bytes=1e30, verify_memory_bytes=None)
    steps = steps_per_batch(problem, plan)
    total = 0.0
    for step in range(1, max(steps) + 1):
        slots = step_schedule(problem, plan, step)
        assert [slot.batch for slot in slots] == [
            m for m, count in enumerate(steps) if count >= step
        ]
        for slot in slots:
            draft, verify = stage_seconds(problem, plan, plan.batches[slot.batch], step)
            assert slot.tasks == len(plan.batches[slot.batch])
            assert slot.verify[1] - slot.verify[0] == pytest.approx(verify)
            assert (slot.draft is None) == (problem.mechanism_of(plan) == "autoregressive")
            if slot.draft is not None:
                assert (
                    slot.draft[1] - slot.draft[0] == pytest.approx(draft)
                    and slot.draft[1] <= slot.verify[0]
                )
        for before, after in itertools.pairwise(slots):
            assert before.verify[1] <= after.verify[0]
            assert before.draft is None or after.draft is None or before.draft[1] <= after.draft[0]
        total += slots[-1].verify[1]
    assert total == pytest.approx(problem.evaluate(plan).terms["inference_seconds"], rel=1e-12)


def example(**changes: object) -> tuple[ServingLatencyProblem, ServingLatencyPlan]:
    """The small problem with some fields replaced, and a plan of two batches."""
    length = 0 if changes.get("mechanism") == "autoregressive" else 1
    plan = {"speculation_length": length, "batches": [[0], [1]], "bandwidth_share": [0.5, 0.5]}
    return by_hand(**changes), ServingLatencyPlan.from_dict(plan)


def test_slots_by_hand() -> None:
    """Tests that drafts overlap verification where they may, and that the shorter batch leaves
    after its two steps.
    """
    pipelined, sequential, alone = (
        example(mechanism=m) for m in ("pipelined", "sequential", "autoregressive")
    )
    assert steps_per_batch(*pipelined) == steps_per_batch(*sequential) == [3, 2]
    assert steps_per_batch(*alone) == [4, 2]
    assert step_schedule(*pipelined, 1) == [
        Slot(0, 1, (0.0, 1.0), (1.0, 11.0)),
        Slot(1, 1, (1.0, 2.0), (11.0, 21.0)),
    ]
    assert step_schedule(*sequential, 2) == [
        Slot(0, 1, (0.0, 1.0), (1.0, 11.0)),
        Slot(1, 1, (11.0, 12.0), (12.0, 22.0)),
    ]
    assert step_schedule(*pipelined, 3) == [Slot(0, 1, (0.0, 1.0), (1.0, 11.0))]
    assert step_schedule(*alone, 1) == [
        Slot(0, 1, None, (0.0, 10.0)),
        Slot(1, 1, None, (10.0, 20.0)),
    ]


def test_what_is_refused() -> None:
    """Tests that a step that a plan does not have, and a plan that violates the problem, are
    refused.
    """
    problem, plan = example()
    for step in (0, 4):
        with pytest.raises(InvalidInput, match=f"^step: expected 1 to 3, got {step}$"):
            step_schedule(problem, plan, step)
    tight, _ = example(draft_memory_bytes=1.0)
    with pytest.raises(InvalidInput, match=r"^plan: batches\[0\]: the batch needs"):
        step_schedule(tight, plan, 1)
