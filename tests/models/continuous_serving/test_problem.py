"""The judge of continuous serving, against the rules written down a second time."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import continuous_serving as naive
from small_instances.serving_latency import BY_HAND
from strategies.serving_plans import changing as problems_with_plans
from strategies.serving_plans import fixed as fixed_batches_with_plans

from specopt import (
    ContinuousServingPlan,
    ContinuousServingProblem,
    InvalidInput,
    ServingLatencyPlan,
    ServingLatencyProblem,
    generate,
)
from specopt.models.continuous_serving.problem import _max_total_share

GRID = {"batch": [1, 1], "new_tokens": [1, 2], "cached_tokens": [0, 0], "seconds": [1.0, 2.0]}
Case = tuple[ContinuousServingProblem, ContinuousServingPlan]


@settings(max_examples=60)
@given(problems_with_plans(tasks=(1, 5), max_output=20))
def test_judge_agrees_with_naive(case: Case) -> None:
    """Tests that objective, terms and feasibility are the naive ones."""
    problem, plan = case
    expected = naive.evaluate(problem.to_dict(), plan.to_dict())
    found = problem.evaluate(plan)
    assert found.objective == pytest.approx(expected["objective"], rel=1e-11)
    for name in ("inference_seconds", "communication_seconds"):
        assert found.terms[name] == pytest.approx(
            expected[name], rel=1e-9, abs=1e-11 * found.objective
        )
    if problem.objective == "mean_latency":
        assert problem.latencies(plan).mean() == pytest.approx(found.objective, rel=1e-11)
    violations = problem.violations(plan)
    assert any("memory" in sentence for sentence in violations) == (not expected["fits"])
    assert any("bandwidth_share" in sentence for sentence in violations) == (not expected["band"])


@settings(max_examples=60)
@given(fixed_batches_with_plans(max_output=20), st.booleans())
def test_fixed_batches_as_one_phase_are_no_slower(
    case: tuple[ServingLatencyProblem, ServingLatencyPlan], equal: bool
) -> None:
    """Tests that fixed batches are feasible as one phase and no slower; as fast where members
    finish together.
    """
    problem, plan = case
    if equal:
        problem = dataclasses.replace(
            problem, output_tokens=np.full(problem.tasks, problem.output_tokens[0])
        )
    free = ContinuousServingProblem(**problem.shared_fields())
    data = {name: value for name, value in plan.to_dict().items() if name != "batches"}
    one = ContinuousServingPlan.from_dict(data | {"phases": [phase(1, *map(list, plan.batches))]})
    before = problem.evaluate(plan).objective
    after = free.evaluate(one).objective
    assert after <= before * (1 + 1e-11)
    if (
        equal
        or problem.output_lengths == "conservative"
        or all(len(batch) == 1 for batch in plan.batches)
    ):
        assert after == pytest.approx(before, rel=1e-11)
    if not problem.violations(plan):
        assert free.violations(one) == []


def tiny(**changes: Any) -> ContinuousServingProblem:
    """Two tasks that draft in 1 s and verify in 10 s, whatever their size; they need 3 and 2 steps
    of 1.5 tokens.
    """
    return ContinuousServingProblem.from_dict(BY_HAND | {"kind": "continuous-serving"} | changes)


def plan(*phases: dict[str, Any], **changes: Any) -> ContinuousServingPlan:
    """A plan of the tiny problem."""
    return ContinuousServingPlan.from_dict(
        {"speculation_length": 1, "bandwidth_share": [0.5, 0.5], "phases": list(phases)} | changes
    )


def phase(first_step: int, *batches: list[int], **more: Any) -> dict[str, Any]:
    """A phase."""
    return {"first_step": first_step, "batches": list(batches)} | more


def test_phases_by_hand() -> None:
    """Tests that steps, regrouping and mixed lengths count as the rules say, without arithmetic."""
    apart, together = [[0], [1]], [[1, 0]]
    assert tiny().evaluate(plan(phase(1, *apart))).terms["inference_seconds"] == 21 + 21 + 11
    moved = plan(phase(1, *apart), phase(2, *together))
    assert tiny().evaluate(moved).terms["inference_seconds"] == 21 + 11 + 11
    assert tiny(regroup_seconds=2.0).evaluate(moved).terms["inference_seconds"] == 21 + 15 + 11
    fewer = plan(
        phase(1, *apart, speculation_length=[3, 1]), phase(2, *together, speculation_length=3)
    )
    assert (
        tiny().evaluate(fewer).terms["inference_seconds"] == 23 + 13 + 13
    )  # 4 tokens need three of 1.875
    found = tiny(objective="mean_latency").evaluate(plan(phase(1, *apart)))
    assert found.terms["inference_seconds"] == (21 + 21 + 11 + 21 + 21) / 2


def test_stretches_by_hand() -> None:
    """Tests that steps in which the same tasks are served are one stretch, the prefill one of its
    own.
    """
    played = tiny(output_tokens=[6, 2]).played(plan(phase(1, [0, 1])))[0]
    assert [(one.first_step, one.last_step, one.sizes) for one in played.stretches] == [
        (1, 1, (2,)),
        (2, 2, (2,)),
        (3, 4, (1,)),
    ]
    assert [(one.start, one.end) for one in played.stretches] == [
        (6.0, 17.0),
        (17.0, 28.0),
        (28.0, 50.0),
    ]


@pytest.mark.parametrize(
    ("problem", "planned", "message"),
    [
        ({}, plan(), "phases: expected at least one phase, got none"),
        ({}, plan(phase(2, [0, 1])), "phases[0].first_step: expected 1, got 2"),
        (
            {},
            plan(phase(1, [0, 1]), phase(1, [0, 1])),
            "phases[1].first_step: expected more than 1, got 1",
        ),
        (
            {},
            plan(phase(1, [0])),
            "phases[0].batches: expected each task from 0 to 1 exactly once",
        ),
        (
            {},
            plan(phase(1, [0, 1], [1])),
            "phases[0].batches: expected each task from 0 to 1 exactly once",
        ),
        (
            {},
            plan(phase(1, [0, 1], speculation_length=[1, 1])),
            "phases[0].speculation_length: expected 1 entries, got 2",
        ),
        (
            {},
            plan(phase(1, [0, 1], speculation_length=0)),
            "phases[0].speculation_length: expected at least 1, got 0",
        ),
        (
            {},
            plan(phase(1, [0, 1], speculation_length=4)),
            "phases[0].speculation_length: expected 1 to 3, got 4",
        ),
        (
            {"draft_memory_bytes": 12.0 + 2 * 4 * 5.5},
            plan(phase(1, [0, 1])),
            "phases[0].batches[0]: the batch needs 0.000 GB of draft-model memory, but only 0.000"
            " GB are available",
        ),
    ],
)
def test_violations_say_what_is_wrong(
    problem: dict[str, Any], planned: ContinuousServingPlan, message: str
) -> None:
    """Tests that what is no plan, or too much, has its sentence."""
    assert message in tiny(**problem).violations(planned)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arrival_seconds": [0.0]}, "arrival_seconds: expected 2 entries"),
        ({"arrival_seconds": [0.0, 1e101]}, r"arrival_seconds\[1\]: expected at most 1e\+100"),
        (
            {"acceptance_rate": [0.5]},
            "acceptance_rate: expected 2 entries, as in input_tokens, got 1",
        ),
        ({"output_lengths": "predicted"}, "output_samples: missing; required when"),
        (
            {"output_samples": [[1]]},
            r"output_samples\[0\]: expected 2 entries, as in input_tokens, got 1",
        ),
        (
            {"output_samples": [[1, 2], [1]]},
            r"output_samples\[1\]: expected a row of the same length as the first",
        ),
        (
            {"regroup_seconds": 1e97},
            "draft_runtime: expected a total time of at most .* seconds, got",
        ),
        (
            {"verify_runtime": {"passes": GRID}},
            r"verify_runtime.passes: continuous-serving does not support measured passes",
        ),
        ({"rounds": "slowest"}, "rounds: unknown field"),
    ],
)
def test_bad_fields_are_refused(changes: dict[str, Any], message: str) -> None:
    """Tests that each new field says what it takes."""
    with pytest.raises(InvalidInput, match=message):
        tiny(**changes)


def test_shares_held_at_one_time() -> None:
    """Tests that shares overlap from each one's start up to its end, however starts and ends are
    ordered.
    """
    random = np.random.default_rng(0)
    for _ in range(50):
        start = random.integers(0, 5, 6).astype(np.float64)
        share = random.random(6)
        end = start + random.integers(1, 4, 6).astype(np.float64)
        held = max(share[(start <= t) & (t < end)].sum() for t in start)
        assert _max_total_share(start, end, share) == pytest.approx(held, rel=1e-12)


def test_a_phase_without_batches() -> None:
    """Tests that a phase that lists no batch is a violation, not an error."""
    problem = generate("continuous-serving/paper-1", tasks=1, seed=1)
    phases = [{"first_step": 1, "batches": []}]
    data = {"phases": phases, "speculation_length": 1, "bandwidth_share": [1.0]}
    found = problem.violations(problem.plan_type.from_dict(data))
    assert found[0] == "phases[0].batches: expected at least one batch, got none"
