"""The exact method on larger problems, and relations between optima."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings

from specopt import ServingLatencyProblem, Status, Termination, generate, solve
from specopt.kinds.serving_latency.strategies import problems
from specopt.models.uplink import spectral_efficiency


def optimum(problem: ServingLatencyProblem) -> float:
    """The least objective by brute force; infinity if infeasible."""
    result = solve(problem, "brute-force")
    return np.inf if result.objective is None else result.objective


EXACT = {
    "mechanisms": ["pipelined", "sequential", "autoregressive", "any"],
    "output_lengths": ["conservative"],
}


@pytest.mark.nightly
@pytest.mark.slow
@settings(max_examples=60)
@given(problems(tasks=(6, 8), max_input=200, max_output=40, max_length=2, **EXACT))  # type: ignore[arg-type]
def test_equals_brute_force_on_more_tasks(problem: ServingLatencyProblem) -> None:
    """Tests that the same holds at the largest sizes of the enumeration, where orders and batches
    abound.
    """
    compare(problem)


def compare(problem: ServingLatencyProblem) -> None:
    """Compare the exact method with the enumeration."""
    result = solve(problem, "exact")
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum(problem), rel=1e-9)
    assert result.gap == 0.0


@pytest.mark.parametrize("mechanism", ["sequential", "autoregressive"])
def test_proves_the_papers_size(mechanism: str) -> None:
    """Tests that a hundred tasks are solved to proven optimality, below every baseline."""
    problem = generate("serving-latency/paper-1", seed=2)
    assert isinstance(problem, ServingLatencyProblem)
    problem = dataclasses.replace(problem, mechanism=mechanism)  # type: ignore[arg-type]
    result = solve(problem, "exact")
    assert result.status is Status.OPTIMAL
    assert result.objective is not None
    for rival in ("heuristic-batching", "static-batching", "max-batching", "no-batching"):
        other = solve(problem, rival).objective
        assert other is not None
        assert result.objective <= other * (1 + 1e-12)


SMALL = problems(tasks=(1, 4))


@given(SMALL)
def test_known_is_no_slower_than_conservative(problem: ServingLatencyProblem) -> None:
    """Tests that knowing the output lengths never raises the optimum."""
    known = dataclasses.replace(problem, output_lengths="known")
    conservative = dataclasses.replace(problem, output_lengths="conservative")
    assert optimum(known) <= optimum(conservative) * (1 + 1e-12)


@given(SMALL)
def test_any_is_the_best_of_the_mechanisms(problem: ServingLatencyProblem) -> None:
    """Tests that leaving the mechanism open gives the least of the three optima."""
    each = [
        optimum(dataclasses.replace(problem, mechanism=mechanism))
        for mechanism in ("pipelined", "sequential", "autoregressive")
    ]
    free = optimum(dataclasses.replace(problem, mechanism="any"))
    assert free == pytest.approx(min(each), rel=1e-12)
    assert each[0] <= each[1] * (1 + 1e-12)  # a pipeline can always wait


@given(SMALL)
def test_dropping_a_task_never_hurts(problem: ServingLatencyProblem) -> None:
    """Tests that fewer tasks take no longer."""
    if problem.tasks == 1:
        return
    fewer = dataclasses.replace(
        problem,
        input_tokens=problem.input_tokens[1:],
        output_tokens=problem.output_tokens[1:],
        snr=problem.snr[1:],
        max_output_tokens=problem.longest_output,
    )
    assert optimum(fewer) <= optimum(problem) * (1 + 1e-12)


@given(SMALL)
def test_shares_are_optimal(problem: ServingLatencyProblem) -> None:
    """Tests that all uploads end together and the whole band is used (Eq. 26-27)."""
    result = solve(problem, "brute-force")
    assert result.plan is not None
    share = np.array(result.plan.to_dict()["bandwidth_share"])
    assert share.sum() == pytest.approx(1.0, rel=1e-12)
    ends = problem.input_tokens / (share * spectral_efficiency(problem.snr))
    assert ends == pytest.approx(np.full(problem.tasks, ends[0]), rel=1e-9)


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
        " of memory, the limit is 5e+05 bytes"
    )
    assert (
        result.objective is not None
        and result.bound is not None
        and 0 < result.bound < result.objective
    )
    assert solve(problem, "fixed-length", memory_limit=500_000).termination is Termination.EXHAUSTED
    few = solve(
        problem, "exact", memory_limit=800_000, time_limit=600, gap=0.02
    )  # one length at a time
    assert "out_of_memory" not in few.stats and few.status is Status.OPTIMAL
