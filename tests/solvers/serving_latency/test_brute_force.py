"""Every method against brute force, and the sizes and workers of brute force."""

from __future__ import annotations

import pytest
from helpers.tabled_runtimes import MEASURED
from helpers.untyped import generate, solve
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt import InvalidInput, ServingLatencyProblem, Unsupported, methods
from specopt.kinds.serving_latency.strategies import problems
from specopt.solvers.method import Method
from specopt.solvers.serving_latency import METHODS


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
    assert problem.violations(result.plan) == []
    assert result.objective >= optimum * (1 - 1e-12)
    if result.bound is not None:
        assert result.bound <= optimum * (1 + 1e-12)


def test_refuses_above_its_size() -> None:
    """Tests that the refusal names the size and the methods that can."""
    problem = generate("serving-latency/paper-1", tasks=9)
    with pytest.raises(
        Unsupported,
        match=r"it has 9 tasks, but the method accepts at most 8 tasks; methods that can:"
        " .*algorithm-1",
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
