"""Every method against brute force, and the sizes and workers of brute force."""

from __future__ import annotations

import math

import pytest
from helpers.tabled_runtimes import MEASURED
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import serving_latency as naive

from specopt import (
    InvalidInput,
    ServingLatencyPlan,
    ServingLatencyProblem,
    Status,
    Unsupported,
    generate,
    methods,
    solve,
)
from specopt.kinds.serving_latency.strategies import problems
from specopt.solvers.method import Method
from specopt.solvers.serving_latency import METHODS


def compare(problem: ServingLatencyProblem) -> None:
    """Compare brute force with the naive oracle."""
    best, plan = naive.brute_force(problem.to_dict())
    result = solve(problem, "brute-force")
    if plan is None:
        assert math.isinf(best)
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.OPTIMAL
    assert result.gap == 0.0
    assert result.plan is not None
    assert result.objective == pytest.approx(best, rel=1e-12)
    assert naive.violations(problem.to_dict(), result.plan.to_dict()) == set()
    assert naive.evaluate(problem.to_dict(), result.plan.to_dict())["objective"] == pytest.approx(
        best, rel=1e-12
    )


@pytest.mark.parametrize("steps", [1, 2])
def test_measured_passes_of_outputs_far_below_the_longest(steps: int) -> None:
    """Tests that known outputs may take fewer steps than kernels read columns, and than the longest
    output allowed.
    """
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
        "verify_runtime": {
            "passes": {
                "batch": [1, 2],
                "new_tokens": [1, 1],
                "cached_tokens": [0, 0],
                "seconds": [0.1, 0.15],
            }
        },
    }
    compare(ServingLatencyProblem.from_dict(data))


@pytest.mark.slow
@settings(max_examples=20)
@given(problems(tasks=(5, 5)))
def test_equals_naive_on_five_tasks(problem: ServingLatencyProblem) -> None:
    """Tests that the same holds at the largest size of the naive oracle."""
    compare(problem)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@settings(max_examples=45)
@given(
    problem=problems(tasks=(1, 6), max_output=12)
    | problems(tasks=(1, 6), max_output=12, **MEASURED)
)
def test_bound_optimum_method(method: type[Method], problem: ServingLatencyProblem) -> None:
    """Tests that bound <= optimum <= every method, on what each method takes."""
    if method().refusal(problem) is not None:
        return
    optimum = solve(problem, "brute-force").objective
    result = solve(problem, method.name)
    assert optimum is not None
    assert result.objective is not None
    assert isinstance(result.plan, ServingLatencyPlan)
    assert problem.violations(result.plan) == []
    assert result.objective >= optimum * (1 - 1e-12)
    if method.exact:
        assert result.objective == pytest.approx(optimum, rel=1e-9)
        assert result.status is Status.OPTIMAL
    if result.bound is not None:
        assert result.bound <= optimum * (1 + 1e-12)


def test_refuses_above_its_size() -> None:
    """Tests that the refusal names the size and the methods that can."""
    problem = generate("serving-latency/paper-1", tasks=9)
    with pytest.raises(
        Unsupported,
        match=r"it has 9 tasks, the method takes at most 8 tasks; methods that can: .*algorithm-1",
    ):
        solve(problem, "brute-force")
    assert "brute-force" not in [method.name for method in methods(problem)]


@settings(max_examples=25)
@given(problems(tasks=(1, 4)), st.integers(2, 5))
def test_workers_change_nothing(problem: ServingLatencyProblem, workers: int) -> None:
    """Tests that several workers find the same plan and bound as one."""
    one, many = (solve(problem, "brute-force", workers=count) for count in (1, workers))
    assert (one.objective, one.bound, one.status) == (many.objective, many.bound, many.status)
    assert one.plan is None or one.plan.to_dict() == many.plan.to_dict()


def test_workers_are_counted() -> None:
    """Tests that a number of workers that is none is refused."""
    with pytest.raises(InvalidInput, match="workers: expected an integer >= 1, got 0"):
        solve(generate("serving-latency/paper-1", tasks=3, seed=1), workers=0)
