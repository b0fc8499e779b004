"""The paper's baselines: that each does what its definition says."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from oracles import serving_latency as naive

from specopt import InvalidInput, ServingLatencyPlan, ServingLatencyProblem, generate, solve
from specopt.kinds.serving_latency.strategies import problems
from specopt.solvers.serving_latency.fixed_length import FixedLength
from specopt.solvers.serving_latency.heuristic_batching import HeuristicBatching
from specopt.solvers.serving_latency.static_batching import StaticBatching

NAMED = ["pipelined", "sequential", "autoregressive"]


@pytest.fixture
def paper() -> ServingLatencyProblem:
    """Twenty tasks of the paper's setting."""
    problem = generate("serving-latency/paper-1", tasks=20, max_output=256, seed=5)
    assert isinstance(problem, ServingLatencyProblem)
    return problem


def planned(problem: ServingLatencyProblem, method: Any) -> ServingLatencyPlan:
    """The plan of a method."""
    plan = solve(problem, method).plan
    assert isinstance(plan, ServingLatencyPlan)
    return plan


def sizes(plan: ServingLatencyPlan) -> list[int]:
    """Batch sizes in pipeline order."""
    return [len(batch) for batch in plan.batches]


def sliced(problem: ServingLatencyProblem, size: int) -> list[list[int]]:
    """Tasks by input length in batches of one size, the last takes the rest."""
    order = sorted(range(problem.tasks), key=lambda k: (problem.input_tokens[k], k))
    return [sorted(order[a : a + size]) for a in range(0, problem.tasks, size)]


def latency(problem: ServingLatencyProblem, size: int, length: int) -> float:
    """T_inf of batches of one size, by the naive oracle; infinity if they do not fit."""
    data = problem.to_dict()
    mechanism = data.get("mechanism", "pipelined")
    batches = sliced(problem, size)
    if not all(naive.fits(data, mechanism, batch, naive.outputs(data)) for batch in batches):
        return np.inf
    times = [naive.batch_times(data, mechanism, batch, length) for batch in batches]
    return naive.inference_seconds(mechanism, times)


def lengths(problem: ServingLatencyProblem) -> range:
    """The speculation lengths to enumerate."""
    return (
        range(1)
        if problem.mechanism == "autoregressive"
        else range(1, (problem.max_speculation_length or 0) + 1)
    )


def test_no_batching(paper: ServingLatencyProblem) -> None:
    """Tests that tasks run one at a time, shortest input first, at the best speculation length."""
    plan = planned(paper, "no-batching")
    assert [list(batch) for batch in plan.batches] == sliced(paper, 1)
    assert plan.speculation_length == min(
        lengths(paper), key=lambda length: latency(paper, 1, length)
    )


def test_static_batching(paper: ServingLatencyProblem) -> None:
    """Tests that batches have eight tasks, or another number where that is asked for."""
    assert sizes(planned(paper, "static-batching")) == [8, 8, 4]
    plan = planned(paper, StaticBatching(size=6))
    assert [list(batch) for batch in plan.batches] == sliced(paper, 6)
    assert plan.speculation_length == min(
        lengths(paper), key=lambda length: latency(paper, 6, length)
    )


def test_static_batching_in_short_memory(paper: ServingLatencyProblem) -> None:
    """Tests that the largest smaller size that fits is used where eight do not."""
    assert paper.draft is not None
    tokens = int(paper.input_tokens.max()) + paper.longest_output
    memory = paper.draft.parameter_bytes + 5.5 * paper.draft.kv_bytes_per_token * tokens
    plan = planned(dataclasses.replace(paper, draft_memory_bytes=memory), "static-batching")
    data = dataclasses.replace(paper, draft_memory_bytes=memory).to_dict()
    fitting = [
        size
        for size in range(1, 9)
        if all(
            naive.fits(data, "pipelined", batch, naive.outputs(data))
            for batch in sliced(paper, size)
        )
    ]
    assert sizes(plan)[0] == max(fitting)


@pytest.mark.parametrize("tasks_that_fit", [1.0, 3.0, 7.99, 40.0])
def test_max_batching(paper: ServingLatencyProblem, tasks_that_fit: float) -> None:
    """Tests that batches have the largest size that fits with I_max and O_max."""
    assert paper.draft is not None
    tokens = int(paper.input_tokens.max()) + paper.longest_output
    memory = paper.draft.parameter_bytes + tasks_that_fit * paper.draft.kv_bytes_per_token * tokens
    plan = planned(dataclasses.replace(paper, draft_memory_bytes=memory), "max-batching")
    assert [list(batch) for batch in plan.batches] == sliced(paper, min(20, int(tasks_that_fit)))


def test_max_batching_minds_the_verify_model(paper: ServingLatencyProblem) -> None:
    """Tests that the verify model's memory counts as well."""
    tokens = int(paper.input_tokens.max()) + paper.longest_output
    memory = paper.verify.parameter_bytes + 4 * paper.verify.kv_bytes_per_token * tokens
    assert (
        sizes(
            planned(dataclasses.replace(paper, verify_memory_bytes=float(memory)), "max-batching")
        )
        == [4] * 5
    )


@settings(max_examples=50)
@given(
    problems(
        tasks=(1, 7),
        output_lengths=["conservative"],
        mechanisms=["pipelined", "sequential", "autoregressive"],
    )
)
def test_heuristic_batching(problem: ServingLatencyProblem) -> None:
    """Tests that sizes are 2, 3, ... until the latency first rises or nothing fits, l by
    enumeration.
    """
    best = np.inf
    for length in lengths(problem):
        size, previous = min(2, problem.tasks), np.inf
        while size <= problem.tasks:
            seconds = latency(problem, size, length)
            if np.isinf(seconds) or seconds > previous * (1 + 1e-13):
                break
            previous = seconds
            size += 1
        best = min(best, previous if np.isfinite(previous) else latency(problem, 1, length))
    found = solve(problem, "heuristic-batching").terms["inference_seconds"]
    if problem.tasks < 3 or not _rises_by_rounding(problem):
        assert found == pytest.approx(best, rel=1e-9)


def _rises_by_rounding(problem: ServingLatencyProblem) -> bool:
    """Whether two neighbouring sizes are so close that rounding decides which is slower."""
    for length in lengths(problem):
        seconds = [latency(problem, size, length) for size in range(2, problem.tasks + 1)]
        for a, b in itertools.pairwise(seconds):
            if np.isfinite(b) and abs(a - b) <= 1e-12 * a:
                return True
    return False


def test_heuristic_batching_starts_where_it_is_told(paper: ServingLatencyProblem) -> None:
    """Tests that the option says which size comes first."""
    assert sizes(planned(paper, HeuristicBatching(first_size=20))) == [20]


@pytest.mark.parametrize(("length", "used"), [(None, 7), (3, 3), (50, 10)])
def test_fixed_length(paper: ServingLatencyProblem, length: int | None, used: int) -> None:
    """Tests that batches are Algorithm 1's at seven draft tokens, at another number, or at
    l_max.
    """
    plan = planned(paper, "fixed-length" if length is None else FixedLength(length=length))
    assert plan.speculation_length == used
    _, batches = naive.algorithm_1_at(paper.to_dict(), used)
    assert [list(batch) for batch in plan.batches] == batches


def test_fixed_length_is_capped_by_the_problem(paper: ServingLatencyProblem) -> None:
    """Tests that the length is min(7, l_max)."""
    assert (
        planned(
            dataclasses.replace(paper, max_speculation_length=4), "fixed-length"
        ).speculation_length
        == 4
    )


def test_uniform_bandwidth(paper: ServingLatencyProblem) -> None:
    """Tests that Algorithm 1's batches with shares of 1/K give the same inference and a slower
    upload.
    """
    uniform, best = solve(paper, "uniform-bandwidth"), solve(paper, "algorithm-1")
    assert isinstance(uniform.plan, ServingLatencyPlan)
    assert isinstance(best.plan, ServingLatencyPlan)
    assert uniform.plan.batches == best.plan.batches
    assert uniform.plan.bandwidth_share.tolist() == [1 / 20] * 20
    assert uniform.terms["inference_seconds"] == best.terms["inference_seconds"]
    assert uniform.terms["communication_seconds"] > best.terms["communication_seconds"]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: StaticBatching(size=0), "size: expected int >= 1, got 0"),
        (lambda: HeuristicBatching(first_size=0), "first_size: expected int >= 1, got 0"),
        (lambda: FixedLength(length=0), "length: expected int >= 1, got 0"),
    ],
)
def test_options_are_checked(build: Any, message: str) -> None:
    """Tests that a size of zero is refused when the method is made."""
    with pytest.raises(InvalidInput, match=message):
        build()


@pytest.mark.parametrize("option", [2.5, "3", True])
def test_options_are_integers(option: Any) -> None:
    """Tests that an option of the wrong type is refused when the method is made."""
    for build in (
        lambda: StaticBatching(size=option),
        lambda: HeuristicBatching(first_size=option),
        lambda: FixedLength(length=option),
    ):
        with pytest.raises(InvalidInput, match="expected"):
            build()
