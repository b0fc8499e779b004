"""The exact method on larger problems, and within little memory."""

from __future__ import annotations

import dataclasses

import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings

from specopt import ServingLatencyProblem, Status, Termination
from specopt.kinds.serving_latency.strategies import problems


@pytest.mark.nightly
@pytest.mark.slow
@settings(max_examples=60)
@given(
    problems(
        tasks=(6, 8),
        max_input=200,
        max_output=40,
        max_length=2,
        output_lengths=["conservative"],
    )
)
def test_equals_brute_force_on_more_tasks(problem: ServingLatencyProblem) -> None:
    """Tests that the same holds at the largest sizes of the enumeration, where orders and batches
    abound.
    """
    result = solve(problem, "exact")
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(solve(problem, "brute-force").objective, rel=1e-9)
    assert result.gap == 0.0


@pytest.mark.parametrize("mechanism", ["sequential", "autoregressive"])
def test_proves_the_papers_size(mechanism: str) -> None:
    """Tests that a hundred tasks are solved to proven optimality, below every baseline."""
    problem = generate("serving-latency/paper-1", seed=2)
    problem = dataclasses.replace(problem, mechanism=mechanism)
    result = solve(problem, "exact")
    assert result.status is Status.OPTIMAL
    for rival in ("heuristic-batching", "static-batching", "max-batching", "no-batching"):
        assert result.objective <= solve(problem, rival).objective * (1 + 1e-12)


def test_tables_that_memory_cannot_hold() -> None:
    """Tests that tables over blocks are estimated first: a plan, the bound so far, and which field
    needs how much.
    """
    problem = generate("serving-latency/paper-1", tasks=60, seed=1)
    kinked = [
        {"seconds_per_flop": 0.0, "overhead_seconds": 0.05},
        problem.to_dict()["verify_runtime"],
    ]
    problem = problem.from_dict(
        problem.to_dict() | {"draft_memory_bytes": 1e15, "verify_runtime": {"pieces": kinked}}
    )
    result = solve(problem, "exact", memory_limit=500_000)  # 200 bytes for each of 61 x 61 blocks
    assert (
        result.stats["out_of_memory"]
        == "arrays over input_tokens (pairs of tasks that may share a batch) need 7.442e+05 bytes"
        " of memory, but the limit is 5e+05 bytes"
    )
    assert 0 < result.bound < result.objective
    assert solve(problem, "fixed-length", memory_limit=500_000).termination is Termination.EXHAUSTED
    few = solve(
        problem, "exact", memory_limit=800_000, time_limit=600, gap=0.02
    )  # one length at a time
    assert "out_of_memory" not in few.stats and few.status is Status.OPTIMAL
