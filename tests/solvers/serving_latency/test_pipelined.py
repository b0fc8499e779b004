"""The search behind `exact`: its bounds, positions and enumeration, made to do the work that small
sizes spare them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings

from specopt import Progress, ServingLatencyProblem, Status, Termination, verify
from specopt.api.library import load_saved, saved_instance
from specopt.kinds.serving_latency.strategies import linear_runtimes, problems
from specopt.solvers.serving_latency import pipelined, positions
from specopt.solvers.serving_latency.cutting_planes import CuttingPlanes
from specopt.solvers.threads import in_threads

WORK = ("parts", "lagrangian_rounds", "nodes")
PIPELINED: Any = {"mechanisms": ["pipelined"], "output_lengths": ["conservative"]}


LABORIOUS = {"_PLANS": 0, "_NODES": 10, "_PATIENCE": 10}
"""Limits at which no part is enumerated at once: every bound is raised, enumeration is given up
early.
"""

SEARCHES: dict[str, dict[str, int]] = {
    "bounds and positions": {},
    "few cells": {"_PATH": 1, "_WIDE": 1, "_FEWEST_CELLS": 2, "_FIRST_POSITIONS": 2},
    "orders within pools": {
        "_FIRST_POSITIONS": 2,
        "LARGEST_APART": 3,
        "_PATH": 0,
        "_LONGEST_PATH": 0,
    },
    "pools": {"LARGEST_APART": 2},
}
"""Limits at which small problems take the ways of large ones."""


def test_quick_proofs_wait_for_no_annealing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a proof in which the bounds take little work needs no annealing, whose kernel
    takes seconds to compile, and that other proofs use it.
    """
    problem, works = generate("serving-latency/paper-1", tasks=40, seed=1), []
    monkeypatch.setattr(pipelined.PipelinedSearch, "_improve", lambda _, work: works.append(work))
    for quick in (pipelined._QUICK, 0):
        assert not works
        monkeypatch.setattr(pipelined, "_QUICK", quick)
        assert solve(problem).status is Status.OPTIMAL
    assert works


@pytest.mark.parametrize("search", SEARCHES)
@settings(max_examples=20)
@given(
    problem=problems(tasks=(2, 7), max_output=20, max_length=2, **PIPELINED)
    | problems(tasks=(4, 7), max_output=20, max_length=2, runtime=linear_runtimes(), **PIPELINED)
)
def test_no_way_loses_the_optimum(search: str, problem: ServingLatencyProblem) -> None:
    """Tests that Lagrangian bounds, coarse paths, further positions and interrupted enumeration
    find the enumerated optimum.

    No bound on the way exceeds it. Pools that are not enumerated leave a gap.
    """
    seen: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (LABORIOUS | SEARCHES[search]).items():
            patch.setattr(pipelined, name, value)
        result = solve(problem, "exact", callback=lambda now: seen.append(now.bound))
    optimum = solve(problem, "brute-force").objective
    for bound in (*seen, result.bound):
        assert bound is None or bound <= optimum * (1 + 1e-9)
    assert optimum <= result.objective * (1 + 1e-9)
    if search != "pools":
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(optimum, rel=1e-9)


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


@pytest.mark.slow
def test_annealing_finds_the_best_number_of_batches() -> None:
    """Tests that the search soon leaves a local optimum with one batch fewer than the best known
    plan.
    """
    best = saved_instance("serving-latency/equal-inputs/K200").best.objective
    result = solve(load_saved("serving-latency/equal-inputs/K200"), "exact", gap=3.7e-4)
    assert result.objective <= best * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_incumbent_and_bound_are_valid_at_every_moment(seed: int) -> None:
    """Tests that progress only improves, and that bound <= final objective <= every incumbent."""
    problem = generate("serving-latency/paper-1", tasks=40, seed=seed)
    seen: list[Progress] = []
    result = solve(problem, "exact", callback=lambda progress: seen.append(progress))
    objectives = [p.objective for p in seen if p.objective is not None]
    bounds = [p.bound for p in seen if p.bound is not None]
    assert objectives == sorted(objectives, reverse=True) and bounds == sorted(bounds)
    assert bounds[-1] <= result.objective * (1 + 1e-9) and objectives[-1] >= result.objective * (
        1 - 1e-12
    )


def test_a_long_search_ends_as_asked(own_clock: None) -> None:
    """Tests that twelve-odd batches, which take seconds to prove, end by gap, callback and limit
    with plan and bound, and that no warm start is lost.
    """
    hard = generate(
        "serving-latency/paper-1",
        pair="1.1B-13B",
        alpha=0.7,
        max_output=128,
        max_input=1792,
        seed=1,
    )
    near = solve(hard, "exact", gap=0.02, time_limit=600)
    assert near.termination is Termination.GAP and 0 < near.gap <= 0.02
    stopped = solve(hard, "exact", callback=lambda now: now.bound is not None and now.seconds > 0.1)
    assert stopped.termination is Termination.INTERRUPTED and verify(hard, stopped).feasible
    limited = solve(hard, "exact", time_limit=0.3)
    assert limited.termination is Termination.TIME_LIMIT and limited.bound < limited.objective
    assert limited.seconds <= 0.3 * 1.05 + 0.05 + 0.2
    again = solve(hard, "exact", warm_start=near, time_limit=0.05)
    assert again.objective <= near.objective * (1 + 1e-12)


@pytest.mark.nightly
def test_large_instances_are_certified() -> None:
    """Tests that a thousand tasks get a plan within half a percent of its bound."""
    result = solve(generate("serving-latency/paper-1", tasks=1000, seed=3), "exact", time_limit=20)
    assert result.gap <= 0.005


def test_misses_bring_proposals_nearer() -> None:
    """Tests that weights to try come nearer to the best ones the longer none of them is better."""
    best = np.array([[0.5, 0.5]])
    planes = CuttingPlanes(best, 1.0)
    planes.learn(best, 1.0, np.array([[1.0, 2.0]]))
    steps = []
    for _ in range(12):
        weights: Any = planes.propose()
        steps.append(float(np.abs(weights - best).max()))
        planes.learn(weights, 0.0, np.array([[1.0, 2.0]]))
    assert steps == sorted(steps, reverse=True) and steps[-1] < 0.5 * steps[0]
