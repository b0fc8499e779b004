"""What optima keep: by the default and by every exact method, on random problems of every kind."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specopt import InvalidInput, Problem, generate, methods, solve
from specopt.kinds import KINDS
from specopt.testing import NotConformant, Relation, relation, relations, strategies

TOLERANCE = 3e-9
"""Two answers are each within the methods' tolerance of the truth."""

SHAPES = {"minimum rates lowered": {"minimum": True}}
"""Problems in which conditions occur."""


@pytest.mark.nightly
@pytest.mark.parametrize("one", relations(), ids=lambda one: f"{one.kind}: {one.name}")
def test_exact_methods_keep_it(one: Relation) -> None:
    """Tests that the relation holds for the optima of every exact method, and that its condition
    occurs.
    """
    held = 0

    @settings(max_examples=24, suppress_health_check=list(HealthCheck))
    @given(strategies.problems(one.kind, **SHAPES.get(one.name, {})), st.integers(0, 99))
    def check(problem: Problem, seed: int) -> None:
        nonlocal held
        other = one.changed(problem, seed)
        if other is None:
            return
        for method in methods(problem):
            value = method()
            if value.exact and value.refusal(other) is None:
                tolerance = 2 * value.tolerance + TOLERANCE
                held += one.check(
                    partial(solve, method=value), problem, seed=seed, tolerance=tolerance
                )

    check()
    assert held > 0


@pytest.mark.nightly
@pytest.mark.parametrize("one", relations(), ids=lambda one: f"{one.kind}: {one.name}")
def test_each_can_fail(one: Relation) -> None:
    """Tests that an answer a thousandth worse than the relation implies is refused, with problem
    and reason.
    """

    def demanding(problem: Problem, objective: float) -> float:
        better = -1e-3 if problem.sense == "minimize" else 1e-3
        return one.implied(problem, objective) + better * abs(objective)

    strict = dataclasses.replace(one, implied=demanding, change=lambda data, random: data)
    caught = 0

    @settings(max_examples=10, suppress_health_check=list(HealthCheck))
    @given(strategies.problems(one.kind))
    def check(problem: Problem) -> None:
        nonlocal caught
        best = solve(problem).objective or 0.0
        if problem.distance(best, 1.001 * best, problem.scale, abs(best)) <= 1e-9:
            return
        with pytest.raises(NotConformant, match="after the change") as error:
            strict.check(solve, problem)
        assert error.value.problem is problem and one.reason in str(error.value)
        caught += 1

    check()
    assert caught > 0


KIND = {kind.name: kind.problem for kind in KINDS}


def test_names_and_kinds_are_checked() -> None:
    """Tests that every kind has relations with names of their own, and that others are refused."""
    assert {one.kind for one in relations()} == set(KIND)
    assert len({(one.kind, one.name) for one in relations()}) == len(relations())
    with pytest.raises(
        InvalidInput, match=r"name: expected one of requests permuted, .*, got 'more'"
    ):
        relation("verification-batch", "more")
    with pytest.raises(
        InvalidInput, match="problem: expected a fair-goodput problem, got draft-allocation"
    ):
        relation("fair-goodput", "one more token").check(
            solve, generate("draft-allocation/ties", clients=3, budget=2)
        )


def test_plans_that_come_or_go_are_seen() -> None:
    """Tests that a relaxed problem without a plan is refused where there was one before."""
    problem = generate("verification-batch/mixed", requests=3)

    def forgetful(asked: Problem) -> object:
        return solve(asked) if asked == problem else None

    with pytest.raises(NotConformant, match=r"finds .*, but no plan after the change"):
        relation("verification-batch", "more memory").check(forgetful, problem)  # type: ignore[arg-type]


def test_a_condition_is_asked_for() -> None:
    """Tests that a relation of tasks that are ready at once does not hold where they arrive."""
    wider = relation("continuous-serving", "more bandwidth")
    problem: Any = generate("continuous-serving/paper-1", tasks=3)
    assert wider.changed(dataclasses.replace(problem, arrival_seconds=np.zeros(3))) is None
    changed: Any = wider.changed(dataclasses.replace(problem, arrival_seconds=None))
    assert changed.bandwidth_hz == 1.5 * problem.bandwidth_hz


def test_changes_of_a_tight_memory() -> None:
    """Tests that memory for one request holds one in other units, and two with a quarter and a byte
    more: by hand.
    """
    mixed: Any = generate("verification-batch/mixed", requests=2)
    problem = dataclasses.replace(
        mixed,
        memory_bytes=4.0,
        request_memory_bytes=np.array([4.0, 1.0]),
        expected_tokens=np.array([3.0, 2.0]),
        deadline_seconds=np.full(2, 1e3),
    )
    assert solve(problem).objective == 3.0
    for name, tokens in (("bytes scaled", 3.0), ("more memory", 5.0)):
        changed = relation("verification-batch", name).changed(problem)
        assert changed is not None and solve(changed).objective == tokens
