"""The judge of serving latency, against the equations written down a second time."""

from __future__ import annotations

import dataclasses
import itertools
import re
from typing import Any

import numpy as np
import pytest
from helpers.tabled_runtimes import MEASURED
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import continuous_serving as naive_served
from oracles import serving_latency as naive

from specopt import (
    InvalidInput,
    LinearRuntime,
    ServingLatencyPlan,
    ServingLatencyProblem,
    Unsupported,
    simulate,
    solve,
)
from specopt.kinds.serving_latency.strategies import (
    plans,
    problems,
    problems_with_plans,
    served_problems,
)
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


def test_contiguity_can_lose_on_known_lengths() -> None:
    """Tests that with known output lengths batching by output can beat every contiguous choice."""
    # short and long answers alternate along the input lengths; memory takes two tasks a batch
    problem = tiny(
        input_tokens=[10, 11, 12, 13],
        output_tokens=[1, 40, 1, 40],
        snr=[1.0] * 4,
        output_lengths="known",
        mechanism="sequential",
        draft_memory_bytes=12 + 2 * 4 * 53,
    )

    def judged(*batches: tuple[int, ...]) -> float:
        chosen = plan(batches=batches, bandwidth_share=[0.25] * 4)
        return np.inf if problem.violations(chosen) else problem.evaluate(chosen).objective

    contiguous = [
        tuple(tuple(range(a, b)) for a, b in itertools.pairwise((0, *cuts, 4)))
        for count in range(4)
        for cuts in itertools.combinations((1, 2, 3), count)
    ]
    assert len(contiguous) == 8
    assert judged((0, 2), (1, 3)) < min(judged(*batches) for batches in contiguous)


@given(problems_with_plans())
def test_sequential_is_no_faster_than_pipelined(
    case: tuple[ServingLatencyProblem, ServingLatencyPlan],
) -> None:
    """Tests that overlapping draft and verification never costs time, at equal plans."""
    problem, plan = case
    if problem.mechanism_of(plan) == "autoregressive":
        return
    plan = dataclasses.replace(plan, mechanism=None)
    pipelined = dataclasses.replace(problem, mechanism="pipelined").evaluate(plan).objective
    sequential = dataclasses.replace(problem, mechanism="sequential").evaluate(plan).objective
    assert pipelined <= sequential * (1 + 1e-12)


@given(problems_with_plans())
def test_known_lengths_are_no_slower(
    case: tuple[ServingLatencyProblem, ServingLatencyPlan],
) -> None:
    """Tests that a plan takes no longer when tasks stop at their own length than when all run to
    O_max.
    """
    problem, plan = case
    known = dataclasses.replace(problem, output_lengths="known").evaluate(plan).objective
    conservative = (
        dataclasses.replace(problem, output_lengths="conservative").evaluate(plan).objective
    )
    assert known <= conservative * (1 + 1e-12)


@given(problems_with_plans(), st.sampled_from([2.0, 0.001]))
def test_units_scale(case: tuple[ServingLatencyProblem, ServingLatencyPlan], factor: float) -> None:
    """Tests that scaling every second scales inference, and dividing the band scales
    communication.
    """
    problem, plan = case

    def slower(runtime: Any) -> Any:
        data = [
            dataclasses.replace(
                p,
                seconds_per_flop=p.seconds_per_flop * factor,
                overhead_seconds=p.overhead_seconds * factor,
            )
            for p in runtime.pieces
        ]
        return dataclasses.replace(runtime, pieces=tuple(data)) if len(data) > 1 else data[0]

    other = dataclasses.replace(
        problem,
        draft_runtime=slower(problem.draft_runtime),
        verify_runtime=slower(problem.verify_runtime),
        bandwidth_hz=problem.bandwidth_hz / factor,
    )
    before, after = problem.evaluate(plan).terms, other.evaluate(plan).terms
    for name in ("inference_seconds", "communication_seconds"):
        assert after[name] == pytest.approx(before[name] * factor, rel=1e-12)


def tiny(**changes: Any) -> ServingLatencyProblem:
    """A problem small enough to work out by hand: models of one layer and hidden size 1."""
    data: dict[str, Any] = {
        "format": "specopt/1",
        "kind": "serving-latency",
        "input_tokens": [3, 1],
        "output_tokens": [4, 2],
        "snr": [1.0, 3.0],
        "bandwidth_hz": 32.0,
        "draft": {"layers": 1, "hidden": 1, "ffn": 1},
        "verify": {"layers": 1, "hidden": 1, "ffn": 1},
        "draft_runtime": {"seconds_per_flop": 0.0, "overhead_seconds": 1.0},
        "verify_runtime": {"seconds_per_flop": 0.0, "overhead_seconds": 10.0},
        "draft_memory_bytes": 1e6,
        "acceptance_rate": 0.5,
        "max_speculation_length": 3,
        "output_lengths": "conservative",
    } | changes
    return ServingLatencyProblem.from_dict(data)


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


def test_other_mechanisms_by_hand() -> None:
    """Tests that sequential batches add up, and that autoregressive ones take a step per token."""
    assert tiny(mechanism="sequential").evaluate(plan()).terms["inference_seconds"] == 3 * 22
    alone = tiny(mechanism="autoregressive").evaluate(plan(speculation_length=0))
    assert alone.terms["inference_seconds"] == 4 * 20
    assert alone.terms["communication_seconds"] == pytest.approx(
        3.0, rel=1e-15
    )  # the verify model's 16 bits


def test_known_lengths_by_hand() -> None:
    """Tests that a batch leaves the pipeline after its own ceil(2 / 1.5) = 2 steps."""
    known = tiny(output_lengths="known")
    assert known.evaluate(plan()).terms["inference_seconds"] == 2 * 21 + 11
    assert known.evaluate(plan(batches=[[1], [0]])).terms["inference_seconds"] == 2 * 21 + 11
    assert known.evaluate(plan(batches=[[1, 0]])).terms["inference_seconds"] == 3 * 11


def test_flops_by_hand() -> None:
    """Tests that Eq. 13 and 14 hold at hidden = ffn = layers = 1, l = 2, alpha = 0.5, where L =
    1.75.
    """
    problem = tiny(
        input_tokens=[3],
        output_tokens=[3],
        snr=[1.0],
        draft_runtime={"seconds_per_flop": 1.0, "overhead_seconds": 0.0},
        verify_runtime={"seconds_per_flop": 1.0, "overhead_seconds": 0.0},
    )
    # n = 1: 4 x 3 x (2 + 3 + 1), then 4 x (2 + (3 - 1 + 1) + 1 + 1); verify 4 x 5 x (2 + 5 + 1)
    # n = 2: 4 x (2 + (3 + 0.75 + i - 1) + 1 + 1), i = 1, 2; verify 4 x 3 x (2 + 3.75 + 2 + 1 + 1)
    expected = 72 + 4 * 7 + 160 + 4 * 7.75 + 4 * 8.75 + 12 * 9.75
    found = problem.evaluate(plan(speculation_length=2, batches=[[0]], bandwidth_share=[1.0]))
    assert found.terms["inference_seconds"] == pytest.approx(expected, rel=1e-14)


def test_any_is_the_named_mechanism() -> None:
    """Tests that a plan of an "any" problem is judged as its own mechanism says, lambda
    included.
    """
    for mechanism, length in (("pipelined", 1), ("sequential", 1), ("autoregressive", 0)):
        own = tiny(mechanism=mechanism).evaluate(plan(speculation_length=length))
        free = tiny(mechanism="any").evaluate(plan(speculation_length=length, mechanism=mechanism))
        assert free == own


@pytest.mark.parametrize(
    ("problem", "changes", "message"),
    [
        ({}, {"bandwidth_share": [0.5, 0.6]}, "bandwidth_share: sums to 1.1, more than 1"),
        ({}, {"speculation_length": 4}, "speculation_length: expected 1 to 3, got 4"),
        (
            {},
            {"speculation_length": 0},
            "speculation_length: expected at least 1 (pipelined), got 0",
        ),
        (
            {"mechanism": "autoregressive"},
            {"speculation_length": 1},
            "speculation_length: expected 0 (autoregressive), got 1",
        ),
        ({}, {"batches": [[0]]}, "batches: task 1 is in 0 batches instead of one"),
        ({}, {"batches": [[0, 1], [1]]}, "batches: task 1 is in 2 batches instead of one"),
        ({}, {"batches": [[0, 0], [1]]}, "batches: task 0 is in 2 batches instead of one"),
        ({}, {"batches": [[0], [], [1]]}, "batches[1]: expected at least one task, got none"),
        ({}, {"batches": [[0], [1, 2]]}, "batches[1]: expected tasks 0 to 1, got 2"),
        ({}, {"batches": [[0], [1, -1]]}, "batches[1]: expected tasks 0 to 1, got -1"),
        ({}, {"bandwidth_share": [0.5]}, "bandwidth_share: expected 2 entries, got 1"),
        ({}, {"bandwidth_share": [0.5, 0.0]}, "bandwidth_share[1]: expected more than 0, got 0.0"),
        (
            {"mechanism": "any"},
            {},
            "plan.mechanism: expected one of pipelined, sequential, autoregressive, got none",
        ),
        ({}, {"mechanism": "sequential"}, "plan.mechanism: expected 'pipelined', got 'sequential'"),
        (
            {"draft_memory_bytes": 12.0 + 4 * 6},
            {},
            "batches[0]: needs 0.000 GB of draft-model memory, 0.000 GB are available",
        ),
        (
            {"verify_memory_bytes": 12.0 + 2 * 4 * 7 - 1},
            {"batches": [[1, 0]]},
            "batches[0]: needs 0.000 GB of verify-model memory, 0.000 GB are available",
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


def test_known_memory_counts_the_batch_itself() -> None:
    """Tests that with known lengths a batch counts its own largest output, not O_max."""
    alone = 12.0 + 4 * (1 + 2)
    problem = tiny(output_lengths="known", draft_memory_bytes=alone)
    assert [v.split(":")[0] for v in problem.violations(plan())] == ["batches[0]"]
    assert len(tiny(draft_memory_bytes=alone).violations(plan())) == 2


def test_evaluate_refuses_what_is_no_plan() -> None:
    """Tests that the equations are not applied to a plan that lacks a task."""
    with pytest.raises(InvalidInput, match="task 1 is in 0 batches"):
        tiny().evaluate(plan(batches=[[0]]))


@pytest.mark.parametrize(
    "name",
    ["draft", "draft_runtime", "draft_memory_bytes", "acceptance_rate", "max_speculation_length"],
)
def test_drafting_needs_its_fields(name: str) -> None:
    """Tests that the draft fields may be left out for autoregressive decoding alone."""
    data = tiny().to_dict()
    del data[name]
    with pytest.raises(InvalidInput, match=f"^{name}: required field is missing"):
        ServingLatencyProblem.from_dict(data)
    assert ServingLatencyProblem.from_dict(data | {"mechanism": "autoregressive"}).tasks == 2


def test_largest_output_bounds_the_maximum() -> None:
    """Tests that O_max below an output length is refused."""
    with pytest.raises(InvalidInput, match=r"max_output_tokens: expected at least .* 4, got 3"):
        tiny(max_output_tokens=3)


@given(problems())
def test_json_round_trip(problem: ServingLatencyProblem) -> None:
    """Tests that a problem survives its JSON form, identity included."""
    again = ServingLatencyProblem.from_dict(problem.to_dict())
    assert again == problem
    assert again.sha256 == problem.sha256
    assert hash(again) == hash(problem)


def test_identity_ignores_name_and_notes() -> None:
    """Tests that the digest is of the problem, not of its label."""
    assert tiny(name="a", notes="b").sha256 == tiny().sha256
    assert tiny(bandwidth_hz=33.0).sha256 != tiny().sha256


def runtime(seconds: float) -> dict[str, float]:
    """A runtime of constant seconds per pass, whatever the work."""
    return {"seconds_per_flop": 0.0, "overhead_seconds": seconds}


def alone(seconds: float) -> ServingLatencyProblem:
    """A problem without drafts whose passes take constant seconds."""
    absent = (
        "draft",
        "draft_runtime",
        "draft_memory_bytes",
        "acceptance_rate",
        "max_speculation_length",
    )
    changes: dict[str, Any] = dict.fromkeys(absent) | {"mechanism": "autoregressive"}
    return dataclasses.replace(tiny(), **changes, verify_runtime=LinearRuntime(**runtime(seconds)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # two tasks, at most 10 tokens with what is drafted, 4 passes a step: 800 passes in all
        (
            {"draft_runtime": runtime(2e97)},
            "draft_runtime: expected a total of at most 1e+100 seconds, got 1.6e+100",
        ),
        (
            {"verify_runtime": runtime(2e97)},
            "verify_runtime: expected a total of at most 1e+100 seconds, got 1.6e+100",
        ),
        (
            {"verify_runtime": runtime(1e308)},
            "verify_runtime: expected a total of at most 1e+100 seconds, got inf",
        ),
        # 32 bits per token at 32 Hz and a spectral efficiency of 1: 1 s for the second task's token
        # at most
        (
            {"snr": [1.0, 1e-200]},
            "snr[1]: expected uploads of 1e-100 to 1e+100 seconds, got 6.93147e+199",
        ),
        (
            {"snr": [3e-308, 1.0], "bandwidth_hz": 0.1},
            "snr[0]: expected uploads of 1e-100 to 1e+100 seconds, got inf",
        ),
        (
            {"bandwidth_hz": 1e102},
            "snr[1]: expected uploads of 1e-100 to 1e+100 seconds, got 1.6e-101",
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
                "draft_runtime.passes.seconds: expected times that do not fall as batches, new or"
                " cached tokens grow"
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
                "batching: serving-latency has no such field, because its batches are fixed; use"
                " the kind continuous-serving for batches that change between decoding steps"
            ),
        ),
        (
            {"batching": "static"},
            "batching: serving-latency has no such field, because its batches are fixed",
        ),
        ({"arrival_seconds": [0.0] * 3}, "arrival_seconds: unknown field"),
        (
            {"rounds": "slowest", "output_lengths": "predicted", "output_samples": [[1, 1]]},
            "rounds: expected 'mean' unless output_lengths is 'conservative' or 'known'",
        ),
        (
            {"rounds": "slowest", "max_output_tokens": 10_001},
            "rounds: expected 'mean' beyond 10,000 output tokens",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(changes: dict[str, Any], message: str) -> None:
    """Tests that a table with a hole or that falls is refused, and what static batches alone can
    have elsewhere.
    """
    with pytest.raises(InvalidInput, match=f"^{re.escape(message)}"):
        ServingLatencyProblem.from_dict(tiny().to_dict() | changes)


def test_what_works_with_operations_refuses_a_table() -> None:
    """Tests that a method for lines and the simulation say what they cannot take, and who can is
    named.
    """
    at = ServingLatencyProblem.from_dict(
        tiny().to_dict() | {"draft_runtime": {"passes": GRID | {"seconds": [1.0] * 4}}}
    )
    with pytest.raises(
        Unsupported,
        match="it has measured passes as draft_runtime, the method takes lines or pieces",
    ):
        solve(at, "milp")
    with pytest.raises(
        Unsupported, match="draft_runtime, verify_runtime: expected lines or pieces here"
    ):
        simulate(at, solve(at))
    slowest = tiny(rounds="slowest", output_lengths="known")
    with pytest.raises(
        Unsupported, match=r'it has the rounds "slowest" of known output lengths.*brute-force'
    ):
        solve(slowest, "no-batching")


def test_the_slowest_of_a_batch() -> None:
    """Tests that alone a task takes its own mean rounds, together as many as the slowest, each by
    its own rate.
    """
    at = tiny(
        rounds="slowest", output_tokens=[9, 9], acceptance_rate=[0.1, 0.9], output_lengths="known"
    )
    alone, slow = slowest_rounds([(9, 0.9)], 1), slowest_rounds([(9, 0.1)], 1)
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
    assert alone(1.02e98).tasks == 2  # 7 tokens at most, a pass each: 98 passes
    with pytest.raises(InvalidInput, match=r"got 1\.0094e\+100"):
        alone(1.03e98)
