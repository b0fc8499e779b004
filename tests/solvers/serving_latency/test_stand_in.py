"""Batches of tasks with rates of their own or predicted lengths: by stand-ins."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import continuous_serving as naive

from specopt import ServingLatencyPlan, ServingLatencyProblem, Status
from specopt.api.library import load_saved
from specopt.kinds.serving_latency.strategies import problems, served_problems
from specopt.solvers.serving_latency.prepare import prepare
from specopt.solvers.serving_latency.stand_in import StandIn


def least(problem: ServingLatencyProblem, shares: np.ndarray) -> float:
    """The least latency of all plans with these shares, by the judge and by the oracle."""
    found, second, data = np.inf, np.inf, problem.to_dict()
    for mechanism in problem.mechanisms:
        lengths = prepare(problem, mechanism).served_lengths
        for length, slots in itertools.product(
            lengths, itertools.product(range(problem.tasks), repeat=problem.tasks)
        ):
            batches = [
                tuple(np.flatnonzero(np.array(slots) == m).tolist()) for m in range(max(slots) + 1)
            ]
            if all(batches):
                plan = ServingLatencyPlan(
                    speculation_length=length,
                    batches=tuple(batches),
                    bandwidth_share=shares,
                    mechanism=mechanism if problem.mechanism == "any" else None,
                )
                if not problem.violations(plan):
                    found = min(found, problem.evaluate(plan).objective)
                value = naive.evaluate(data, plan.to_dict())
                second = min(second, value["objective"] if value["fits"] else np.inf)
    assert found == pytest.approx(second, rel=1e-9)
    return found


@settings(max_examples=12, deadline=None)
@given(served_problems(tasks=(1, 3), max_output=12, max_length=2))
def test_between_bound_and_optimum(problem: ServingLatencyProblem) -> None:
    """Tests that bound <= optimum <= plan, whatever tasks differ in, and that there is no plan only
    if none fits.
    """
    assume(StandIn().refusal(problem) is None)
    found = solve(problem, StandIn(moves=50))
    optimum = least(problem, prepare(problem).shares)
    if found.status is Status.INFEASIBLE:
        assert optimum == np.inf
        return
    assert found.bound <= optimum * (1 + 1e-9)
    assert optimum <= found.objective * (1 + 1e-9)


@settings(max_examples=15, deadline=None)
@given(problems(tasks=(2, 3), max_output=12, max_length=2), st.data())
def test_samples_alone_bound_the_mean(problem: ServingLatencyProblem, data: st.DataObject) -> None:
    """Tests that the mean of what samples take alone is below every plan's mean over them."""
    row = st.lists(st.integers(1, 12), min_size=problem.tasks, max_size=problem.tasks)
    samples = data.draw(st.lists(row, min_size=1, max_size=3))
    changes = {"output_lengths": "predicted", "output_samples": samples, "rounds": "mean"}
    problem = ServingLatencyProblem.from_dict(problem.to_dict() | changes)
    assume(StandIn().refusal(problem) is None)
    found = solve(problem, StandIn(moves=50))
    optimum = least(problem, prepare(problem).shares)
    assert (found.status is Status.INFEASIBLE) == (optimum == np.inf)
    if optimum < np.inf:
        assert found.bound <= optimum * (1 + 1e-9)
        assert optimum <= found.objective * (1 + 1e-9)


@pytest.mark.parametrize("name", ["mooncake/llama", "burstgpt/qwen3"])
def test_predicted_lengths_of_traces_are_certified(name: str) -> None:
    """Tests that a dozen tasks of predicted lengths are within 1 % of the bound."""
    assert solve(load_saved(f"serving-latency/{name}-K12-predicted")).gap <= 0.01


def test_samples_may_exceed_the_longest_output() -> None:
    """Tests that predicted lengths are planned for where a sample is longer than
    `max_output_tokens` allows.
    """
    problem = generate("serving-latency/paper-1", tasks=2, max_output=5, seed=1)
    data = problem.to_dict() | {"output_lengths": "predicted", "output_samples": [[4, 5], [120, 1]]}
    found = solve(ServingLatencyProblem.from_dict(data | {"max_output_tokens": 5}), "stand-in")
    assert found.plan is not None
    assert found.objective == solve(ServingLatencyProblem.from_dict(data)).objective


def test_default_where_no_other_method_plans() -> None:
    """Tests that `solve` plans tasks with rates of their own, and no worse than as if they had the
    mean rate.
    """
    problem = generate("serving-latency/paper-1", tasks=20, seed=3)
    rates = np.random.default_rng(0).beta(8, 2, 20)
    own = ServingLatencyProblem.from_dict(
        problem.to_dict() | {"acceptance_rate": rates.tolist(), "output_lengths": "known"}
    )
    alike = ServingLatencyProblem.from_dict(
        own.to_dict() | {"acceptance_rate": float(rates.mean())}
    )
    found, other = solve(own, time_limit=20), solve(alike, "length-aware", time_limit=20)
    assert found.stats["members"] == ["stand-in"]
    assert found.objective <= own.evaluate(other.plan).objective


@pytest.mark.parametrize("samples", [1, 8])
def test_samples_are_planned_for(samples: int) -> None:
    """Tests that one sample is as good as known lengths, and many no worse than their longest
    lengths.
    """
    base = generate("serving-latency/paper-1", tasks=12, seed=1).to_dict()
    base.pop("max_output_tokens", None)
    rows = np.random.default_rng(1).integers(1, 1024, size=(samples, 12))
    predicted = ServingLatencyProblem.from_dict(
        base
        | {
            "output_lengths": "predicted",
            "output_samples": rows.tolist(),
            "output_tokens": rows[0].tolist(),
        }
    )
    known = ServingLatencyProblem.from_dict(
        base | {"output_lengths": "known", "output_tokens": rows.max(axis=0).tolist()}
    )
    found, extreme = solve(predicted), solve(known, "length-aware")
    assert found.objective <= predicted.evaluate(extreme.plan).objective * (
        1 + 1e-3 * (samples == 1)
    )
