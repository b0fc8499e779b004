"""The paper's baselines: that each does what its definition says."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings
from oracles import serving_latency as naive

from specopt import InvalidInput, ServingLatencyPlan, ServingLatencyProblem
from specopt.kinds.serving_latency.strategies import problems
from specopt.solvers.serving_latency.baselines import (
    FixedLength,
    HeuristicBatching,
    StaticBatching,
)
from specopt.solvers.serving_latency.milp import Milp
from specopt.solvers.serving_latency.prepare import prepare


@pytest.fixture
def paper() -> ServingLatencyProblem:
    """Twenty tasks of the paper's setting."""
    problem: ServingLatencyProblem = generate(
        "serving-latency/paper-1", tasks=20, max_output=256, seed=5
    )
    return problem


def room(problem: ServingLatencyProblem, which: str, tasks: float) -> ServingLatencyProblem:
    """The problem with a model's memory for a number of tasks of I_max and O_max."""
    model = getattr(problem, which)
    tokens = int(problem.input_tokens.max()) + problem.longest_output
    memory: Any = {
        f"{which}_memory_bytes": model.parameter_bytes + tasks * model.kv_bytes_per_token * tokens
    }
    return dataclasses.replace(problem, **memory)


def planned(problem: ServingLatencyProblem, method: Any) -> ServingLatencyPlan:
    """The plan of a method."""
    plan: ServingLatencyPlan = solve(problem, method).plan
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


def test_no_batching(paper: ServingLatencyProblem) -> None:
    """Tests that tasks run one at a time, shortest input first, at the best speculation length."""
    plan = planned(paper, "no-batching")
    assert [list(batch) for batch in plan.batches] == sliced(paper, 1)
    assert plan.speculation_length == min(
        prepare(paper).served_lengths, key=lambda length: latency(paper, 1, length)
    )


def test_static_batching(paper: ServingLatencyProblem) -> None:
    """Tests that batches have eight tasks, or another number where that is asked for."""
    assert sizes(planned(paper, "static-batching")) == [8, 8, 4]
    plan = planned(paper, StaticBatching(size=6))
    assert [list(batch) for batch in plan.batches] == sliced(paper, 6)
    assert plan.speculation_length == min(
        prepare(paper).served_lengths, key=lambda length: latency(paper, 6, length)
    )


def test_static_batching_in_short_memory(paper: ServingLatencyProblem) -> None:
    """Tests that the largest smaller size that fits is used where eight do not."""
    short = room(paper, "draft", 5.5)
    fitting = [size for size in range(1, 9) if np.isfinite(latency(short, size, 1))]
    assert sizes(planned(short, "static-batching"))[0] == max(fitting)


@pytest.mark.parametrize("tasks_that_fit", [1.0, 3.0, 7.99, 40.0])
def test_max_batching(paper: ServingLatencyProblem, tasks_that_fit: float) -> None:
    """Tests that batches have the largest size that fits with I_max and O_max."""
    plan = planned(room(paper, "draft", tasks_that_fit), "max-batching")
    assert [list(batch) for batch in plan.batches] == sliced(paper, min(20, int(tasks_that_fit)))


def test_max_batching_minds_the_verify_model(paper: ServingLatencyProblem) -> None:
    """Tests that the verify model's memory counts as well."""
    assert sizes(planned(room(paper, "verify", 4.0), "max-batching")) == [4] * 5


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
    for length in prepare(problem).served_lengths:
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
    for length in prepare(problem).served_lengths:
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


def test_uniform_bandwidth(paper: ServingLatencyProblem) -> None:
    """Tests that Algorithm 1's batches with shares of 1/K give the same inference and a slower
    upload.
    """
    uniform, best = solve(paper, "uniform-bandwidth"), solve(paper, "algorithm-1")
    assert uniform.plan.batches == best.plan.batches
    assert uniform.plan.bandwidth_share.tolist() == [1 / 20] * 20
    assert uniform.terms["inference_seconds"] == best.terms["inference_seconds"]
    assert uniform.terms["communication_seconds"] > best.terms["communication_seconds"]


@pytest.mark.parametrize(
    ("method", "option"),
    [
        (StaticBatching, "size"),
        (HeuristicBatching, "first_size"),
        (FixedLength, "length"),
        (Milp, "length"),
    ],
)
def test_options_are_checked(method: Any, option: str) -> None:
    """Tests that zero and other types are refused when the method is made."""
    with pytest.raises(InvalidInput, match=f"{option}: expected int >= 1, got 0"):
        method(**{option: 0})
    for value in (2.5, "3", True):
        with pytest.raises(InvalidInput, match=f"{option}: expected"):
            method(**{option: value})
