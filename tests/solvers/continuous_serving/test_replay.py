"""Plans of continuous serving played with random acceptances."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings

from specopt import (
    ContinuousServingProblem,
    ServingLatencyProblem,
    Unsupported,
    simulate,
)
from specopt.kinds.continuous_serving.strategies import problems


def without_luck(problem: ContinuousServingProblem, rate: float) -> ContinuousServingProblem:
    """The problem as it is replayed, known lengths, with (nearly) no or (nearly) every draft
    accepted.
    """
    changes: dict[str, Any] = {
        "arrival_seconds": None,
        "output_samples": None,
        "output_lengths": "known",
    }
    changes |= {"regroup_seconds": 0.0, "min_speculation_length": 1}
    if problem.mechanism != "autoregressive":
        changes["acceptance_rate"] = rate
    return dataclasses.replace(problem, **changes)


@pytest.mark.parametrize("rate", [1e-12, 1.0 - 1e-15])
@settings(max_examples=15, deadline=None)
@given(problem=problems(tasks=(1, 5), max_output=20))
def test_without_luck_it_is_the_judge(rate: float, problem: ContinuousServingProblem) -> None:
    """Tests that where no draft is accepted, or all are, every replication takes what the judge
    says.
    """
    certain = without_luck(problem, rate)
    plan = solve(certain, "rebatching").plan
    played = simulate(certain, plan, replications=2)
    assert played.samples == pytest.approx(certain.evaluate(plan).objective, rel=1e-9)


def test_one_task_is_a_static_batch() -> None:
    """Tests that the mean of one task is that of the static replay, which is compiled and draws
    otherwise.
    """
    problem = generate("continuous-serving/paper-1", tasks=1, seed=4)
    free = dataclasses.replace(problem, output_lengths="known")
    known = ServingLatencyProblem(**free.shared_fields())
    static, anew = solve(known, "length-aware").plan, solve(free, "rebatching").plan
    anew = dataclasses.replace(anew, phases=anew.phases[:1])
    same = dataclasses.replace(
        static, speculation_length=anew.phases[0].lengths(anew.speculation_length)[0]
    )
    one, other = simulate(known, same, replications=2000), simulate(free, anew, replications=400)
    assert abs(one.mean - other.mean) <= 4.0 * np.hypot(one.standard_error, other.standard_error)


def test_luck_is_paired_and_repeats() -> None:
    """Tests that a seed gives the same luck again, another one another, and that arrivals are
    refused.
    """
    problem = generate("continuous-serving/paper-1", tasks=8, seed=1)
    free = dataclasses.replace(problem, output_lengths="known")
    plan = solve(free, "rebatching").plan
    first, again, other = (
        simulate(free, plan, replications=3, seed=seed).samples for seed in (1, 1, 2)
    )
    assert (first == again).all() and (first != other).all()
    late = dataclasses.replace(free, arrival_seconds=np.arange(8.0))
    with pytest.raises(Unsupported, match="arrivals"):
        simulate(late, solve(late, "rebatching").plan, replications=2)
