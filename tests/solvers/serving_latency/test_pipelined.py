"""The search behind `exact`: its bounds, positions and enumeration, made to do the work that small
sizes spare them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from specopt import (
    Problem,
    Progress,
    Result,
    ServingLatencyProblem,
    Status,
    Termination,
    generate,
    solve,
    verify,
)
from specopt.api.library import load_saved, saved_instance
from specopt.kinds.serving_latency.strategies import linear_runtimes, problems
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency import pipelined, positions
from specopt.solvers.serving_latency.bound import lower_bound
from specopt.solvers.serving_latency.cutting_planes import CuttingPlanes
from specopt.solvers.serving_latency.method import offer_first_plan
from specopt.solvers.serving_latency.prepare import prepare
from specopt.solvers.threads import in_threads

WORK = ("parts", "lagrangian_rounds", "nodes")
PIPELINED = {"mechanisms": ["pipelined"], "output_lengths": ["conservative"]}


@pytest.fixture
def laborious() -> Iterator[None]:
    """Let no part be enumerated at once: raise every bound, give up enumeration early, look for
    weights often.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipelined, "_PLANS", 0)
        patch.setattr(pipelined, "_FEW", 0)
        patch.setattr(pipelined, "_NODES", 10)
        patch.setattr(pipelined, "_PATIENCE", 10)
        patch.setattr(pipelined.PipelinedSearch, "_polish", lambda self: None)
        patch.setattr(pipelined.PipelinedSearch, "_anneal", lambda self, *start: None)
        yield


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # it patches constants
@given(problems(tasks=(2, 7), max_output=20, max_length=2, **PIPELINED))  # type: ignore[arg-type]
def test_bounds_and_positions_lose_no_optimum(
    laborious: None, problem: ServingLatencyProblem
) -> None:
    """Tests that Lagrangian bounds, further positions and interrupted enumeration still find the
    enumerated optimum.
    """
    result, enumerated = solve(problem, "exact"), solve(problem, "brute-force")
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(enumerated.objective, rel=1e-9)


@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # it patches constants
@given(problems(tasks=(4, 7), max_output=20, max_length=2, runtime=linear_runtimes(), **PIPELINED))  # type: ignore[arg-type]
def test_coarse_bounds_lose_no_optimum(laborious: None, problem: ServingLatencyProblem) -> None:
    """Tests that paths over few cells and few positions, refined step by step, lead to the
    enumerated optimum.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("_PATH", 1),
            ("_WIDE", 1),
            ("_FEWEST_CELLS", 2),
            ("_FIRST_POSITIONS", 2),
        ):
            patch.setattr(pipelined, name, value)
        result = solve(problem, "exact")
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(solve(problem, "brute-force").objective, rel=1e-9)


@settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # it patches constants
@given(problems(tasks=(4, 7), max_output=20, max_length=2, **PIPELINED))  # type: ignore[arg-type]
def test_orders_within_pools_are_enumerated(
    laborious: None, problem: ServingLatencyProblem
) -> None:
    """Tests that two positions kept apart and all orders of the blocks between lead to the
    enumerated optimum.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("_FIRST_POSITIONS", 2),
            ("LARGEST_APART", 3),
            ("_PATH", 0),
            ("_LONGEST_PATH", 0),
        ):
            patch.setattr(pipelined, name, value)
        result = solve(problem, "exact")
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(solve(problem, "brute-force").objective, rel=1e-9)


@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # it patches constants
@given(problems(tasks=(4, 7), max_output=20, max_length=2, **PIPELINED))  # type: ignore[arg-type]
def test_pooled_parts_are_bounded(laborious: None, problem: ServingLatencyProblem) -> None:
    """Tests that bound <= optimum <= objective where larger numbers of batches are pooled, not
    enumerated.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipelined, "LARGEST_APART", 2)
        result = solve(problem, "exact")
    optimum = solve(problem, "brute-force").objective
    assert optimum is not None and result.bound is not None and result.objective is not None
    assert result.bound <= optimum * (1 + 1e-9)
    assert optimum <= result.objective * (1 + 1e-9)


SHARED = (
    (pipelined, "_FIRST_POSITIONS", 2),
    (pipelined, "_LONGEST_PATH", 0),
    (pipelined, "_NODES", 100),
    (pipelined, "_PATIENCE", 10**9),
    (positions, "_LARGE", 0),
)


@pytest.mark.parametrize("name", ["tight-memory/K20-fit1", "stage-ratio/K40-x5", "slow-link/K100"])
def test_workers_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that threads share paths, branches and orders of an enumeration, and take the nodes
    that one takes.
    """
    shared: list[int] = []

    def counted(workers: int, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        shared.append(len(items))
        return in_threads(workers, function, items)

    for module, constant, value in SHARED:
        monkeypatch.setattr(module, constant, value)
    monkeypatch.setattr(positions, "in_threads", counted)
    problem = load_saved(f"serving-latency/{name}")
    one, two, five = (solve(problem, "exact", workers=workers) for workers in (1, 2, 5))
    assert {2, positions._BRANCHES} <= set(shared)
    assert one.status is Status.OPTIMAL
    assert one.objective == pytest.approx(
        saved_instance(f"serving-latency/{name}").best.objective, rel=1e-9
    )
    for other in (two, five):
        assert (other.plan, other.bound) == (one.plan, one.bound)
        assert [other.stats[key] for key in WORK] == [one.stats[key] for key in WORK]


@settings(max_examples=60)
@given(problems(tasks=(1, 7), max_output=20, max_length=3, output_lengths=["conservative"]))
def test_lower_bound(problem: ServingLatencyProblem) -> None:
    """Tests that the bound given to heuristics never exceeds the optimum, for every mechanism."""
    optimum = solve(problem, "brute-force").objective
    if optimum is None:
        return
    bounds = []
    for mechanism in problem.mechanisms:
        prepared = prepare(problem, mechanism)
        if prepared.misfit() is None:
            budget = Budget(problem)
            offer_first_plan(prepared, budget)
            bounds.append(lower_bound(prepared, budget))
    assert min(bound for bound in bounds if bound is not None) <= optimum * (1 + 1e-9)


@pytest.fixture(scope="module")
def hard() -> Problem:
    """A problem of twelve-odd batches that takes some seconds to prove."""
    return generate(
        "serving-latency/paper-1",
        pair="1.1B-13B",
        alpha=0.7,
        max_output=128,
        max_input=1792,
        seed=1,
    )


@pytest.mark.parametrize("seed", range(3))
def test_incumbent_and_bound_are_valid_at_every_moment(seed: int) -> None:
    """Tests that progress only improves, and that bound <= final objective <= every incumbent."""
    problem = generate("serving-latency/paper-1", tasks=40, seed=seed)
    seen: list[Progress] = []
    result = solve(problem, "exact", callback=lambda progress: seen.append(progress))
    assert result.objective is not None and seen
    objectives = [p.objective for p in seen if p.objective is not None]
    bounds = [p.bound for p in seen if p.bound is not None]
    assert objectives == sorted(objectives, reverse=True) and bounds == sorted(bounds)
    assert bounds[-1] <= result.objective * (1 + 1e-9) and objectives[-1] >= result.objective * (
        1 - 1e-12
    )


def test_time_limit(hard: Problem, own_clock: None) -> None:
    """Tests that a limit far too short gives a plan, a bound and the reason."""
    solve(generate("serving-latency/paper-1", tasks=12, seed=0), "exact")  # compiled
    result = solve(hard, "exact", time_limit=0.3)
    assert result.status is Status.FEASIBLE and result.termination is Termination.TIME_LIMIT
    assert (
        result.bound is not None
        and result.objective is not None
        and result.bound < result.objective
    )
    assert result.seconds <= 0.3 * 1.05 + 0.05 + 0.2


def test_gap(hard: Problem) -> None:
    """Tests that a wide gap ends the search early, with a plan inside it."""
    result = solve(hard, "exact", gap=0.02, time_limit=600)
    assert result.status is Status.OPTIMAL and result.termination is Termination.GAP
    assert result.gap is not None and 0 < result.gap <= 0.02


def test_stop_from_the_callback(hard: Problem) -> None:
    """Tests that a callback's True ends the search with the best plan so far."""
    result = solve(
        hard,
        "exact",
        callback=lambda progress: progress.bound is not None and progress.seconds > 0.1,
    )
    assert result.termination is Termination.INTERRUPTED
    assert result.plan is not None and verify(hard, result).feasible


def test_warm_start(hard: Problem) -> None:
    """Tests that a warm start's plan is never lost, even without time to improve it."""
    first: Result = solve(hard, "exact", gap=0.01, time_limit=600)
    again = solve(hard, "exact", warm_start=first, time_limit=0.05)
    assert first.objective is not None and again.objective is not None
    assert again.objective <= first.objective * (1 + 1e-12)


@settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # it patches constants
@given(problems(tasks=(4, 7), max_output=20, max_length=2, **PIPELINED))  # type: ignore[arg-type]
def test_bounds_hold_while_parts_are_split(laborious: None, problem: ServingLatencyProblem) -> None:
    """Tests that no bound reported on the way exceeds the optimum, whatever part is at work."""
    seen: list[float] = []
    solve(
        problem, "exact", callback=lambda p: seen.append(p.bound) if p.bound is not None else None
    )
    optimum = solve(problem, "brute-force").objective
    assert optimum is not None and max(seen) <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_equal_inputs(tasks: int) -> None:
    """Tests that ties among equal tasks are no trouble."""
    base = generate("serving-latency/paper-1", tasks=tasks, max_output=16, seed=0)
    assert isinstance(base, ServingLatencyProblem)
    problem = dataclasses.replace(base, input_tokens=base.input_tokens * 0 + 50)
    exact, enumerated = solve(problem, "exact"), solve(problem, "brute-force")
    assert exact.objective is not None and enumerated.objective is not None
    assert math.isclose(exact.objective, enumerated.objective, rel_tol=1e-9)


@pytest.mark.nightly
def test_large_instances_are_certified() -> None:
    """Tests that a thousand tasks get a plan within half a percent of its bound."""
    result = solve(generate("serving-latency/paper-1", tasks=1000, seed=3), "exact", time_limit=20)
    assert result.gap is not None and result.gap <= 0.005


def test_misses_bring_proposals_nearer() -> None:
    """Tests that weights to try come nearer to the best ones the longer none of them is better."""
    best = np.array([[0.5, 0.5]])
    planes = CuttingPlanes(best, 1.0)
    planes.learn(best, 1.0, np.array([[1.0, 2.0]]))
    steps = []
    for _ in range(12):
        weights = planes.propose()
        assert weights is not None
        steps.append(float(np.abs(weights - best).max()))
        planes.learn(weights, 0.0, np.array([[1.0, 2.0]]))
    assert steps == sorted(steps, reverse=True) and steps[-1] < 0.5 * steps[0]
