"""The judge of serving latency, against the equations written down a second time."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from helpers.tabled_runtimes import MEASURED
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import continuous_serving as naive_served
from oracles import serving_latency as naive
from small_instances.serving_latency import by_hand
from strategies.serving_plans import fixed as problems_with_plans

from specopt import (
    InvalidInput,
    ServingLatencyPlan,
    ServingLatencyProblem,
    simulate,
    solve,
)
from specopt.kinds.serving_latency.strategies import plans, served_problems
from specopt.models.acceptance import slowest_rounds
from specopt.models.serving_latency.schedule import steps_per_batch


@settings(max_examples=100)
@given(problems_with_plans(max_output=30) | problems_with_plans(max_output=12, **MEASURED))
def test_judge_agrees_with_naive(case: tuple[ServingLatencyProblem, ServingLatencyPlan]) -> None:
    """Tests that objective and terms are those of the naive oracle, mechanisms, costs, runtimes and
    rounds alike.
    """
    problem, plan = case
    expected = naive.evaluate(problem.to_dict(), plan.to_dict())
    found = problem.evaluate(plan)
    assert found.objective == pytest.approx(expected["objective"], rel=1e-12)
    assert found.terms["inference_seconds"] == pytest.approx(
        expected["inference_seconds"], rel=1e-12
    )
    assert found.terms["communication_seconds"] == pytest.approx(
        expected["communication_seconds"], rel=1e-12
    )


@settings(max_examples=60)
@given(served_problems(tasks=(1, 5), max_output=20), st.data())
def test_rates_and_samples_agree_with_naive(
    problem: ServingLatencyProblem, data: st.DataObject
) -> None:
    """Tests that objective and feasibility are the naive ones with a rate for each task and
    predicted lengths.
    """
    plan = data.draw(plans(problem))
    expected = naive_served.evaluate(problem.to_dict(), plan.to_dict())
    assert problem.evaluate(plan).objective == pytest.approx(expected["objective"], rel=1e-11)
    assert (problem.violations(plan) == []) == (expected["fits"] and expected["band"])


@settings(max_examples=100)
@given(problems_with_plans(feasible=False))
def test_violations_agree_with_naive(
    case: tuple[ServingLatencyProblem, ServingLatencyPlan],
) -> None:
    """Tests that a plan violates something exactly when the naive oracle says so."""
    problem, plan = case
    assert bool(problem.violations(plan)) == bool(
        naive.violations(problem.to_dict(), plan.to_dict())
    )


@given(problems_with_plans(output_lengths=("conservative",)))
def test_contiguous_batches_are_no_worse(
    case: tuple[ServingLatencyProblem, ServingLatencyPlan],
) -> None:
    """Tests that batches of the same sizes in the same positions, contiguous in input length, cost
    no more.
    """
    problem, plan = case
    padded = [int(problem.input_tokens[list(batch)].max()) for batch in plan.batches]
    ascending = [int(k) for k in np.argsort(problem.input_tokens, kind="stable")]
    batches: list[tuple[int, ...]] = [()] * len(padded)
    for m in sorted(range(len(padded)), key=lambda m: padded[m]):
        size = len(plan.batches[m])
        batches[m], ascending = tuple(ascending[:size]), ascending[size:]
    contiguous = dataclasses.replace(plan, batches=tuple(batches))
    assert problem.evaluate(contiguous).objective <= problem.evaluate(plan).objective * (1 + 1e-12)
    if not problem.violations(plan):
        assert problem.violations(contiguous) == []


@given(problems_with_plans())
def test_what_is_never_slower(case: tuple[ServingLatencyProblem, ServingLatencyPlan]) -> None:
    """Tests that tasks that stop at their own length take no longer than when all run to O_max, and
    overlapping draft and verification no longer than taking turns, at equal plans.
    """
    problem, plan = case
    pairs = [("output_lengths", "known", "conservative")]
    if problem.mechanism_of(plan) != "autoregressive":
        pairs.append(("mechanism", "pipelined", "sequential"))
        plan = dataclasses.replace(plan, mechanism=None)
        problem = dataclasses.replace(problem, mechanism="pipelined")
    for field, quick, slow in pairs:
        one, other = (
            dataclasses.replace(problem, **{field: value}).evaluate(plan).objective  # type: ignore[arg-type]
            for value in (quick, slow)
        )
        assert one <= other * (1 + 1e-12)


def tiny(**changes: Any) -> ServingLatencyProblem:
    """The small problem with the longest output for all, unless it says otherwise."""
    return by_hand(**{"output_lengths": "conservative", **changes})


def plan(**changes: Any) -> ServingLatencyPlan:
    """A plan of the tiny problem."""
    return ServingLatencyPlan.from_dict(
        {"speculation_length": 1, "batches": [[0], [1]], "bandwidth_share": [0.5, 0.5]} | changes
    )


def test_pipeline_by_hand() -> None:
    """Tests that a case without arithmetic is right: draft 1 s, verify 10 s, two batches, ceil(4 /
    1.5) = 3 steps.
    """
    found = tiny().evaluate(plan())
    assert found.terms["inference_seconds"] == 3 * (1 + 10 + 10)
    # task 0: 32 bits x 3 / (16 Hz x log2(2)); task 1: 32 / (16 x log2(4))
    assert found.terms["communication_seconds"] == pytest.approx(6.0, rel=1e-15)


@pytest.mark.parametrize(
    ("problem", "changes", "message"),
    [
        (
            {},
            {"bandwidth_share": [0.5, 0.6]},
            "bandwidth_share: the shares sum to 1.1, which exceeds 1",
        ),
        ({}, {"speculation_length": 4}, "speculation_length: expected 1 to 3, got 4"),
        (
            {},
            {"speculation_length": 0},
            "speculation_length: expected at least 1 when mechanism is 'pipelined', got 0",
        ),
        (
            {"mechanism": "autoregressive"},
            {"speculation_length": 1},
            "speculation_length: expected 0 when mechanism is 'autoregressive', got 1",
        ),
        ({}, {"batches": [[0]]}, "batches: task 1 is in 0 batches instead of one"),
        ({}, {"batches": [[0, 1], [1]]}, "batches: task 1 is in 2 batches instead of one"),
        ({}, {"batches": [[0, 0], [1]]}, "batches: task 0 is in 2 batches instead of one"),
        ({}, {"batches": [[0], [], [1]]}, "batches[1]: expected at least one task, got none"),
        ({}, {"batches": [[0], [1, 2]]}, "batches[1]: expected tasks 0 to 1, got 2"),
        ({}, {"batches": [[0], [1, -1]]}, "batches[1]: expected tasks 0 to 1, got -1"),
        ({}, {"bandwidth_share": [0.5]}, "bandwidth_share: expected 2 entries, got 1"),
        ({}, {"bandwidth_share": [0.5, 0.0]}, "bandwidth_share[1]: expected a number > 0, got 0.0"),
        (
            {"mechanism": "any"},
            {},
            "plan.mechanism: expected one of pipelined, sequential, autoregressive, got none",
        ),
        ({}, {"mechanism": "sequential"}, "plan.mechanism: expected 'pipelined', got 'sequential'"),
        (
            {"draft_memory_bytes": 12.0 + 4 * 6},
            {},
            "batches[0]: the batch needs 0.000 GB of draft-model memory, but only 0.000 GB are"
            " available",
        ),
        (
            {"verify_memory_bytes": 12.0 + 2 * 4 * 7 - 1},
            {"batches": [[1, 0]]},
            "batches[0]: the batch needs 0.000 GB of verify-model memory, but only 0.000 GB are"
            " available",
        ),
    ],
)
def test_violations_say_what_is_wrong(
    problem: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    """Tests that each broken constraint of problem (24) has its sentence."""
    assert message in tiny(**problem).violations(plan(**changes))


@pytest.mark.parametrize("which", ["draft_memory_bytes", "verify_memory_bytes"])
def test_memory_counts_padded_tokens(which: str) -> None:
    """Tests that both tasks of a batch count with the longest input and output, to the byte."""
    needed = 12.0 + 2 * 4 * (3 + 4)  # Eq. 9: 8 + 4; Eq. 10: two tasks, 4 bytes, 3 + 4 tokens
    together = plan(batches=[[0, 1]])
    assert tiny(**{which: needed}).violations(together) == []
    assert len(tiny(**{which: needed - 0.5}).violations(together)) == 1
    assert (
        tiny(**{which: needed - 1e-10}).violations(together) == []
    )  # within the tolerance of the format


def test_evaluate_refuses_what_is_no_plan() -> None:
    """Tests that the equations are not applied to a plan that lacks a task."""
    with pytest.raises(InvalidInput, match="task 1 is in 0 batches"):
        tiny().evaluate(plan(batches=[[0]]))


DRAFTING = (
    "draft",
    "draft_runtime",
    "draft_memory_bytes",
    "acceptance_rate",
    "max_speculation_length",
)


@pytest.mark.parametrize("name", DRAFTING)
def test_drafting_needs_its_fields(name: str) -> None:
    """Tests that the draft fields may be left out for autoregressive decoding alone."""
    data = tiny().to_dict()
    del data[name]
    with pytest.raises(InvalidInput, match=f"^{name}: missing; required when"):
        ServingLatencyProblem.from_dict(data)
    assert ServingLatencyProblem.from_dict(data | {"mechanism": "autoregressive"}).tasks == 2


def test_identity_ignores_name_and_notes() -> None:
    """Tests that the digest is of the problem, not of its label."""
    assert tiny(name="a", notes="b").sha256 == tiny().sha256
    assert tiny(bandwidth_hz=33.0).sha256 != tiny().sha256


def runtime(seconds: float) -> dict[str, float]:
    """A runtime of constant seconds per pass, whatever the work."""
    return {"seconds_per_flop": 0.0, "overhead_seconds": seconds}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # two tasks, at most 10 tokens with what is drafted, 4 passes a step: 800 passes in all
        (
            {"draft_runtime": runtime(2e97)},
            "draft_runtime: expected a total time of at most 1e+100 seconds, got 1.6e+100",
        ),
        (
            {"verify_runtime": runtime(2e97)},
            "verify_runtime: expected a total time of at most 1e+100 seconds, got 1.6e+100",
        ),
        (
            {"verify_runtime": runtime(1e308)},
            "verify_runtime: expected a total time of at most 1e+100 seconds, got inf",
        ),
        # 32 bits per token at 32 Hz and a spectral efficiency of 1: 1 s for the second task's token
        # at most
        (
            {"snr": [1.0, 1e-200]},
            "snr[1]: expected an upload time of 1e-100 to 1e+100 seconds, got 6.93147e+199",
        ),
        (
            {"snr": [3e-308, 1.0], "bandwidth_hz": 0.1},
            "snr[0]: expected an upload time of 1e-100 to 1e+100 seconds, got inf",
        ),
        (
            {"bandwidth_hz": 1e102},
            "snr[1]: expected an upload time of 1e-100 to 1e+100 seconds, got 1.6e-101",
        ),
        (
            {"verify_runtime": {"seconds_per_flop": 1e300, "overhead_seconds": 0.0}},
            "verify_runtime: expected a total time of at most 1e+100 seconds, got 8.32e+305",
        ),
    ],
)
def test_what_floating_point_cannot_hold_is_refused(changes: dict[str, Any], message: str) -> None:
    """Tests that seconds out of range are refused by the field that is to blame, with the
    seconds.
    """
    with pytest.raises(InvalidInput) as refusal:
        tiny(**changes)
    assert str(refusal.value) == message


GRID = {"batch": [1, 1, 2, 2], "new_tokens": [1, 3, 1, 3], "cached_tokens": [0] * 4}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"draft_runtime": {"passes": GRID | {"seconds": [1.0, 2.0, 3.0, 1.5]}}},
            (
                "draft_runtime.passes.seconds: times must not decrease as the batch size, new"
                " tokens or cached tokens increase; the relative distance to the closest monotone"
            ),
        ),
        (
            {
                "verify_runtime": {
                    "passes": {
                        name: column[:3] for name, column in (GRID | {"seconds": [1.0] * 4}).items()
                    }
                }
            },
            "verify_runtime.passes: expected a complete grid",
        ),
        (
            {"batching": "rebatched"},
            (
                "batching: serving-latency has no such field, because its batches are fixed; for"
                " batches that change between decoding steps, use the kind continuous-serving"
            ),
        ),
        (
            {"batching": "static"},
            "batching: serving-latency has no such field, because its batches are fixed",
        ),
        ({"arrival_seconds": [0.0] * 3}, "arrival_seconds: unknown field"),
        (
            {"max_output_tokens": 3},
            "max_output_tokens: expected at least the largest value in output_tokens, 4, got 3",
        ),
        (
            {"rounds": "slowest", "output_lengths": "predicted", "output_samples": [[1, 1]]},
            "rounds: expected 'mean' unless output_lengths is 'conservative' or 'known'",
        ),
        (
            {"rounds": "slowest", "max_output_tokens": 10_001},
            "rounds: expected 'mean' for more than 10,000 output tokens",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(changes: dict[str, Any], message: str) -> None:
    """Tests that a table with a hole or that falls, and O_max below an output length are refused,
    and what static batches alone can have elsewhere.
    """
    with pytest.raises(InvalidInput, match=f"^{re.escape(message)}"):
        tiny(**changes)


def test_the_simulation_plays_a_table() -> None:
    """Tests that measured passes of one second each are played as a runtime of one second."""
    passes = {"passes": GRID | {"seconds": [1.0] * 4}}
    measured, constant = (tiny(draft_runtime=given) for given in (passes, runtime(1.0)))
    planned = solve(constant).plan
    found, same = (simulate(at, planned, replications=50) for at in (measured, constant))
    means = [one.estimates["latency_seconds"].mean for one in (found, same)]
    assert means[0] == pytest.approx(means[1], rel=1e-12)


def test_the_slowest_of_a_batch() -> None:
    """Tests that alone a task takes its own mean rounds, together as many as the slowest, each by
    its own rate.
    """
    at = tiny(
        rounds="slowest", output_tokens=[9, 9], acceptance_rate=[0.1, 0.9], output_lengths="known"
    )
    alone = slowest_rounds([(9, 0.9)], 1)
    slow = slowest_rounds([(9, 0.1)], 1)
    assert (alone, slow) == (6, 9)
    share = [0.5, 0.5]
    assert steps_per_batch(
        at, plan(speculation_length=1, batches=((0,), (1,)), bandwidth_share=share)
    ) == [slow, alone]
    assert steps_per_batch(
        at, plan(speculation_length=1, batches=((0, 1),), bandwidth_share=share)
    ) == [slow]


def test_what_floating_point_can_hold_is_taken() -> None:
    """Tests that runtimes just within the range are taken."""
    assert tiny(draft_runtime=runtime(1e97), verify_runtime=runtime(1.2e97)).tasks == 2
    autoregressive = dict.fromkeys(DRAFTING) | {"mechanism": "autoregressive"}
    # 7 tokens at most, a pass each: 98 passes
    assert tiny(**autoregressive, verify_runtime=runtime(1.02e98)).tasks == 2
    with pytest.raises(InvalidInput, match=r"got 1\.0094e\+100"):
        tiny(**autoregressive, verify_runtime=runtime(1.03e98))
