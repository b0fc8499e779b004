"""The mixed-integer program: its optima on larger problems against `exact`, limits and refusals."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings

from specopt import ServingLatencyProblem, Status, Termination, Unsupported
from specopt.kinds.serving_latency.strategies import problems
from specopt.solvers.serving_latency.exact import Exact
from specopt.solvers.serving_latency.milp import Case, Milp, Shape
from specopt.solvers.serving_latency.prepare import prepare


def generated(tasks: int, max_output: int, **fields: object) -> Any:
    """A problem of the paper's setting with short inputs and outputs."""
    problem = generate(
        "serving-latency/paper-1", tasks=tasks, max_input=512, max_output=max_output, seed=1
    )
    return dataclasses.replace(problem, **fields)


def compare(problem: ServingLatencyProblem) -> None:
    """Compare the program with brute force and, where it takes the problem, with `exact`."""
    result = solve(problem, "milp")
    oracles = ["brute-force"] if Exact().refusal(problem) else ["brute-force", "exact"]
    for oracle in oracles:
        best = solve(problem, oracle)
        assert result.status is best.status
        assert (
            best.objective * (1 - 1e-9) <= result.objective <= best.objective * (1 + Milp.tolerance)
        )
        assert result.bound == pytest.approx(best.objective, rel=Milp.tolerance)


@pytest.mark.nightly
@pytest.mark.slow
@settings(max_examples=60)
@given(problems(tasks=(4, 4), max_output=20, max_length=2, mechanisms=("pipelined",)))
def test_equals_enumeration_and_exact_on_four_tasks(problem: ServingLatencyProblem) -> None:
    """Tests that four tasks in the pipeline agree, for both meanings of output lengths."""
    compare(problem)


@pytest.mark.slow
@pytest.mark.parametrize("output_lengths", ["conservative", "known"])
def test_equals_enumeration_and_exact_where_stages_balance(output_lengths: str) -> None:
    """Tests that the paper's setting agrees, where order and overlap matter and every length is a
    program.
    """
    compare(generated(4, 24, output_lengths=output_lengths))
    compare(
        generated(4, 24, output_lengths=output_lengths, mechanism="any", max_speculation_length=3)
    )


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("output_lengths", ["conservative", "known"])
@pytest.mark.parametrize("tasks", [5, 6])
def test_given_length_on_more_tasks(tasks: int, output_lengths: str) -> None:
    """Tests that sizes that need a given speculation length are solved to the optimum."""
    problem = generated(tasks, 24, output_lengths=output_lengths, max_speculation_length=1)
    result = solve(problem, Milp(length=1))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(solve(problem, "brute-force").objective, rel=1e-9)


@pytest.mark.parametrize("pair", ["1.1B-7B", "68M-7B"])
def test_the_papers_own_setting(pair: str) -> None:
    """Tests that ranges of steps prove four tasks of a thousand steps."""
    problem = generate("serving-latency/paper-1", tasks=4, pair=pair, seed=1)
    found, best = solve(problem, "milp"), solve(problem, "exact")
    assert found.status is Status.OPTIMAL and found.objective == pytest.approx(
        best.objective, rel=1e-9
    )
    assert found.bound <= best.objective * (1 + 1e-9)


def test_ranges_are_divided_where_the_critical_batches_change() -> None:
    """Tests that ranges are halved until what a plan's steps take together is what their sums
    take.
    """
    problem = generated(3, 40)
    case = Case(prepare(problem), 2)
    plan = case.prepared.plan([[0], [1], [2]], 2)
    starts = case.first_ranges
    while len(finer := case.halved(starts, plan)) > len(starts):
        assert set(starts) < set(finer)
        starts = finer
    drafted = summed = np.zeros(len(starts))
    sizes = zip(case.prepared.inputs.tolist(), case.prepared.outputs.tolist(), strict=True)
    for row in [case.shapes.index(Shape(1, float(n), float(o))) for n, o in sizes]:
        drafted = drafted + np.add.reduceat(case.stages[0][row], starts)
        summed = np.maximum(drafted, summed) + np.add.reduceat(case.stages[1][row], starts)
    expected = problem.evaluate(plan).terms["inference_seconds"]
    assert summed.sum() == pytest.approx(expected, rel=1e-9)


@settings(max_examples=15)
@given(problems(tasks=(1, 3), mechanisms=("pipelined", "sequential")))
def test_given_lengths_enumerated_by_hand(problem: ServingLatencyProblem) -> None:
    """Tests that the best given length is the optimum, and that the bound of each holds for every
    plan.
    """
    optimum = solve(problem, "brute-force").objective
    best = np.inf
    for length in prepare(problem).lengths:
        result = solve(problem, Milp(length=length))
        assert result.plan.to_dict()["speculation_length"] == length
        assert result.bound <= optimum * (1 + 1e-9)
        assert result.stats["bound_at_length"] == pytest.approx(result.objective, rel=1e-6)
        best = min(best, result.objective)
    assert best == pytest.approx(optimum, rel=1e-9)


def test_time_limit_keeps_plan_and_bound(own_clock: None) -> None:
    """Tests that a limit within a program gives its incumbent, a valid bound and the reason."""
    problem = generated(6, 64, output_lengths="known", max_speculation_length=3)
    solve(generated(1, 4), "milp")  # loads the solver
    started = time.perf_counter()
    result = solve(problem, Milp(length=3), time_limit=0.6)
    assert time.perf_counter() - started < 1.6
    assert result.termination is Termination.TIME_LIMIT
    assert result.status is Status.FEASIBLE
    optimum = solve(problem, "brute-force").objective
    assert 0 < result.bound <= optimum <= result.objective


def test_infeasible_says_what_clashes() -> None:
    """Tests that a task too large for the memory is named."""
    problem = generated(3, 24, verify_memory_bytes=1e9)
    result = solve(problem, "milp")
    assert result.status is Status.INFEASIBLE
    assert "of verify-model memory alone" in result.explanation


@pytest.mark.parametrize(
    ("problem", "method", "reason"),
    [
        (
            generated(5, 24),
            Milp(),
            "it has 5 tasks, but the method accepts at most 4 tasks unless its option length"
            " is set",
        ),
        (
            generated(7, 24),
            Milp(length=1),
            "it has 7 tasks, but the method accepts at most 6 tasks",
        ),
        (
            generated(4, 5000),
            Milp(),
            r"it has 2,\d\d\d decoding steps, but the method accepts at most 2,000 decoding steps",
        ),
        (
            generated(4, 24),
            Milp(length=11),
            (
                "it has a max_speculation_length of 10, below 11, but the method accepts .*"
                " its option"
                " length"
            ),
        ),
    ],
)
def test_refusals(problem: ServingLatencyProblem, method: Milp, reason: str) -> None:
    """Tests that sizes and lengths out of reach are refused, with the methods that can."""
    with pytest.raises(
        Unsupported,
        match=f"method milp cannot solve this problem: {reason}; methods that can: .*exact",
    ):
        solve(problem, method)


def test_autoregressive_ignores_the_length() -> None:
    """Tests that serving without drafting is solved whatever speculation length is asked for."""
    problem = generated(3, 24, mechanism="autoregressive")
    assert solve(problem, Milp(length=3)).objective == solve(problem, "brute-force").objective
