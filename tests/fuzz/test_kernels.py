"""Kernels on small problems of every kind, by every method that takes them, and in simulations.

Meant for ``NUMBA_BOUNDSCHECK=1`` with its own ``NUMBA_CACHE_DIR``: an index out of bounds is then
an exception. By default problems 0 to 199; `numbered` says how others are chosen.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from fuzz.kernel_problems import kernel_problem
from fuzz.numbered import check_all, numbered
from helpers.results import check_results

from specopt import (
    ContinuousServingProblem,
    InvalidInput,
    Problem,
    Unsupported,
    generate,
    methods,
    simulate,
    solve,
)
from specopt.kinds import kind_of
from specopt.models.result import Result
from specopt.solvers.clock import Clock
from specopt.solvers.continuous_serving.policies import POLICIES
from specopt.solvers.continuous_serving.policies import play as serve

LIMIT_SECONDS = 0.2
METHODS = 5
"""Methods per problem."""


def check(number: int) -> None:
    """Solve a problem by some of the methods that take it, judge the results, and play a plan or a
    policy.
    """
    problem, rng = kernel_problem(number), random.Random(-1 - number)
    able = methods(problem)
    chosen = rng.sample(able, min(METHODS, len(able)))
    found = [
        (method(), solve(problem, method(), time_limit=LIMIT_SECONDS, seed=number))
        for method in chosen
    ]
    check_results(problem, found)
    if rng.random() < 0.3:
        with suppress(InvalidInput, Unsupported):  # what a simulator or a policy does not play
            play(
                problem, next((result for _, result in found if result.plan is not None), None), rng
            )


def play(problem: Problem, result: Result[Any] | None, rng: random.Random) -> None:
    """Play a plan of the problem, or a policy of its kind on the problem or on a small workload."""
    simulator = kind_of(problem).simulator
    if isinstance(problem, ContinuousServingProblem):
        known: Any = "known" if problem.output_lengths == "predicted" else problem.output_lengths
        played = replace(
            problem, regroup_seconds=0.0, objective="mean_latency", output_lengths=known
        )
        serve(played, rng.choice(POLICIES), 1)
        return
    if simulator is None:
        return
    if isinstance(problem, simulator.world):
        if result is not None:
            simulate(problem, result, seed=rng.randrange(100), replications=2)
        return
    family = rng.choice(simulator.workloads)
    short: dict[str, Any] = {
        "rounds": 30,
        "requests": 20,
        "warm_up_requests": 2,
        "seconds": 3.0,
        "warm_up_seconds": 1.0,
    }
    options = {name: value for name, value in short.items() if name in simulator.options}
    world, policy = family.generate(seed=rng.randrange(100)), rng.choice(simulator.policies)
    simulate(world, policy, seed=rng.randrange(100), replications=1, **options)


def test_an_index_error_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that what a kernel raises ends a solve, in the caller's thread or another, with a time
    limit or without.
    """

    def fails(*arguments: Any, **named: Any) -> None:
        raise IndexError("index is out of bounds")

    monkeypatch.setattr("specopt.solvers.continuous_serving.rebatching.PhaseBuilder._next", fails)
    serving = generate("continuous-serving/paper-1", tasks=2, max_output=5, seed=1)
    for limit in (None, 10.0):
        with pytest.raises(IndexError):
            solve(serving, "rebatching", time_limit=limit)
        with pytest.raises(IndexError):
            Clock(limit).call(fails)


@pytest.mark.nightly
@pytest.mark.usefixtures("own_clock")
@numbered(200)
def test_no_index_out_of_bounds(numbers: range) -> None:
    """Tests that kernels read and write within their arrays, that plans are judged feasible, and
    that bounds hold.
    """
    check_all(numbers, check, lambda number: kernel_problem(number).to_dict())
