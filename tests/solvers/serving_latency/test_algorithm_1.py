"""Algorithm 1 against a plain re-implementation that loops over the decoding steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings
from oracles import serving_latency as naive

from specopt import ServingLatencyProblem, Status
from specopt.kinds.serving_latency.strategies import problems
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.contiguous import algorithm_1_batches, backtrack
from specopt.solvers.serving_latency.kernels.algorithm_1 import stage_segments
from specopt.solvers.serving_latency.prepare import prepare
from specopt.solvers.serving_latency.stages import stages


def check(problem: ServingLatencyProblem) -> None:
    """Compare planned latencies with the plain ones, and the plan's objective as the naive oracle
    judges it.
    """
    data = problem.to_dict()
    prepared = prepare(problem)
    for length in prepared.lengths:
        _, seconds = algorithm_1_batches(prepared, length, Budget(problem))
        assert seconds == pytest.approx(naive.algorithm_1_at(data, length)[0], rel=1e-9)
    planned, expected = naive.algorithm_1(data)
    result = solve(problem, "algorithm-1")
    if expected is None:  # known lengths fit, O_max does not
        assert problem.output_lengths == "known"
        assert problem.violations(result.plan) == []
        return
    assert result.objective == pytest.approx(naive.evaluate(data, expected)["objective"], rel=1e-9)
    if problem.output_lengths == "conservative":
        assert result.terms["inference_seconds"] == pytest.approx(planned, rel=1e-9)


@settings(max_examples=150)
@given(
    problems(tasks=(1, 7), mechanisms=["pipelined"], max_output=20)
    | problems(tasks=(6, 12), max_input=200, mechanisms=["pipelined"], max_output=150, max_length=2)
)
def test_equals_plain(problem: ServingLatencyProblem) -> None:
    """Tests that closed-form sums and segments are right, for lines and for the maximum of lines,
    over a few steps and over many.
    """
    check(problem)


@pytest.mark.nightly
@pytest.mark.slow
@settings(max_examples=40)
@given(
    problems(tasks=(1, 12), max_input=200, mechanisms=["pipelined"], max_output=300, max_length=5)
)
def test_equals_plain_on_long_outputs(problem: ServingLatencyProblem) -> None:
    """Tests that it holds for more tasks and hundreds of steps, where completion times cross in
    mid-run.
    """
    check(problem)


@pytest.mark.parametrize("pair", ["68M-7B", "1.1B-7B", "1.1B-13B"])
def test_equals_plain_on_the_papers_setting(pair: str) -> None:
    """Tests that it holds for Tables I and II with fewer tasks and shorter outputs."""
    check(generate("serving-latency/paper-1", pair=pair, tasks=9, max_output=128, seed=3))


def tiny(inputs: list[int], outputs: list[int], **fields: Any) -> ServingLatencyProblem:
    """A problem of the smallest models."""
    data = {
        "format": "specopt/1",
        "kind": "serving-latency",
        "input_tokens": inputs,
        "output_tokens": outputs,
        "snr": [1.0] * len(inputs),
        "bandwidth_hz": 1e3,
        "draft": {"layers": 1, "hidden": 1, "ffn": 1},
        "verify": {"layers": 1, "hidden": 1, "ffn": 1},
        "acceptance_rate": 0.5,
        "max_speculation_length": 4,
        "output_lengths": "conservative",
    }
    return ServingLatencyProblem.from_dict(data | fields)


def test_ties_go_to_the_later_boundary_and_the_smaller_length() -> None:
    """Tests that when nothing costs anything every batch is as late as it can be, and l is 1."""
    free = {"seconds_per_flop": 0.0, "overhead_seconds": 0.0}
    problem = tiny(
        [5, 4, 5, 3], [7] * 4, draft_runtime=free, verify_runtime=free, draft_memory_bytes=1e9
    )
    plan = solve(problem, "algorithm-1").plan
    assert plan.batches == ((3,), (1,), (0,), (2,))
    assert plan.speculation_length == 1


def through(*ends: float) -> dict[str, Any]:
    """A runtime whose pieces change at these operations exactly: slopes 1, 2, ... in powers of
    two.
    """
    slope = 2.0**-40
    heights = [slope * sum(ends[k:]) for k in range(len(ends) + 1)]
    rows = [
        {"seconds_per_flop": (k + 1) * slope, "overhead_seconds": height}
        for k, height in enumerate(heights)
    ]
    return {"pieces": rows}


def test_pieces_that_change_at_a_step() -> None:
    """Tests that there is room where rounding puts steps between two pieces: six segments where
    lines change twice.
    """
    problem = tiny(
        [5],
        [20],
        acceptance_rate=0.1,
        max_speculation_length=1,
        verify={"layers": 1, "hidden": 3, "ffn": 1},
        draft_runtime=through(49.599999999999994, 71.6),
        verify_runtime=through(470.4, 628.8),
        draft_memory_bytes=1e9,
    )
    at = stages(prepare(problem), 1)
    assert stage_segments(at.data, 1.0, 0, int(at.steps[0]), np.zeros((20, 5))) > 1 + 2 * (
        at.data.runtimes.shape[1] - 1
    )
    check(problem)


def test_backtrack_jumps_to_the_start_of_the_last_batch() -> None:
    """Tests that S = (1, 1, 3, 3) means the positions 0-1 and 2-3, and that 0, where no batch fits,
    means none.
    """
    found = backtrack(np.array([-1, 0, 0, 2, 2]), np.array([3, 1, 0, 2]))
    assert found is not None
    assert [batch.tolist() for batch in found] == [[3, 1], [0, 2]]
    assert backtrack(np.array([-1, 0, -1, 2, 2]), np.arange(4)) is None


def test_known_lengths_that_fit_only_as_known() -> None:
    """Tests that a problem whose tasks fit at their own length, not at O_max, still gets a feasible
    plan.
    """
    second = {"seconds_per_flop": 0.0, "overhead_seconds": 1.0}
    problem = tiny(
        [5, 4],
        [2, 3],
        max_output_tokens=100,
        draft_runtime=second,
        verify_runtime=second,
        draft_memory_bytes=12 + 4 * 2 * 8,
        output_lengths="known",
    )
    assert naive.algorithm_1(problem.to_dict())[1] is None
    for method in ("algorithm-1", "fixed-length", "uniform-bandwidth"):
        result = solve(problem, method)
        assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
        assert problem.violations(result.plan) == []
