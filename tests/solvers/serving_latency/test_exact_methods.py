"""Every exact method against the enumeration of an oracle that shares no code."""

from __future__ import annotations

import math

import pytest
from helpers.tabled_runtimes import MEASURED
from helpers.untyped import solve
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import serving_latency as naive

from specopt import ServingLatencyProblem, Status
from specopt.kinds.serving_latency.strategies import problems
from specopt.solvers.method import Method
from specopt.solvers.serving_latency import METHODS
from specopt.solvers.serving_latency.brute_force import BruteForce

EXACT = [method for method in METHODS if method.exact]

MILP_TASKS = 3
"""Largest number of tasks for the integer program here: with more it takes seconds."""


@pytest.mark.parametrize("method", EXACT, ids=lambda method: method.name)
@given(data=st.data())
def test_equals_the_optimum(method: type[Method], data: st.DataObject) -> None:
    """Tests that every method proves the oracle's optimum on every problem that it accepts."""
    tasks = (1, MILP_TASKS if method.name == "milp" else 4)
    drawn = problems(tasks=tasks) | problems(tasks=tasks, **MEASURED)
    problem = data.draw(drawn.filter(lambda one: method().refusal(one) is None))
    compare(problem, method)


@pytest.mark.parametrize(
    "method", [method for method in EXACT if method.name != "milp"], ids=lambda one: one.name
)
@settings(max_examples=20)
@given(data=st.data())
def test_equals_the_optimum_where_memory_may_be_short(
    method: type[Method], data: st.DataObject
) -> None:
    """Tests that infeasible is the answer exactly where no partition fits."""
    drawn = problems(tasks=(1, 4), feasible=False)
    compare(data.draw(drawn.filter(lambda one: method().refusal(one) is None)), method)


@pytest.mark.slow
@settings(max_examples=20)
@given(problems(tasks=(5, 5)))
def test_five_tasks_by_brute_force(problem: ServingLatencyProblem) -> None:
    """Tests that the same holds at the largest size of the oracle."""
    compare(problem, BruteForce)


@pytest.mark.parametrize("steps", [1, 2])
def test_measured_passes_of_outputs_far_below_the_longest(steps: int) -> None:
    """Tests that known outputs may take fewer steps than kernels read columns, and than the longest
    output allowed.
    """
    passes = {
        "batch": [1, 2],
        "new_tokens": [1, 1],
        "cached_tokens": [0, 0],
        "seconds": [0.1, 0.15],
    }
    data = {
        "format": "specopt/1",
        "kind": "serving-latency",
        "mechanism": "autoregressive",
        "input_tokens": [9, 4],
        "output_tokens": [steps, 1],
        "snr": [1.0, 1.0],
        "bandwidth_hz": 1e6,
        "output_lengths": "known",
        "max_output_tokens": 20,
        "verify": {"layers": 1, "hidden": 8, "ffn": 8},
        "verify_runtime": {"passes": passes},
    }
    compare(ServingLatencyProblem.from_dict(data), BruteForce)


def compare(problem: ServingLatencyProblem, method: type[Method]) -> None:
    """Compare a method with the oracle."""
    best, plan = naive.brute_force(problem.to_dict())
    result = solve(problem, method.name)
    if plan is None:
        assert math.isinf(best)
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.OPTIMAL
    assert best * (1 - 1e-9) <= result.objective <= best * (1 + method.tolerance)
    assert result.bound == pytest.approx(best, rel=method.tolerance)
    assert naive.violations(problem.to_dict(), result.plan.to_dict()) == set()
    judged = naive.evaluate(problem.to_dict(), result.plan.to_dict())["objective"]
    assert judged == pytest.approx(result.objective, rel=1e-12)
