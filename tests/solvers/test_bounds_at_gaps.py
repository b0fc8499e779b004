"""Bounds where a wide gap ends a search early: what was proven, never the target."""

from __future__ import annotations

import dataclasses

import pytest
from helpers.instances import INSTANCES
from helpers.untyped import generate, solve
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt import Problem, Progress
from specopt.kinds import KINDS
from specopt.solvers.method import Method

CASES = [
    pytest.param(method, problem, id=f"{kind.name}: {method.name}: {name}")
    for kind in KINDS
    for name, problem in INSTANCES[kind.name].items()
    for method in kind.methods
    if method.exact and method().refusal(problem) is None
]
NEVER_NEGATIVE = (
    "serving-latency",
    "prompt-chunking",
    "verification-batch",
    "draft-control",
    "draft-stopping",
)


def check_bounds(problem: Problem, method: Method | str, *gaps: float) -> None:
    """Check the bounds of a method at gaps: against those it reported on the way, its first one,
    and the optimum.
    """
    sign = 1.0 if problem.sense == "minimize" else -1.0
    alone: list[Progress] = []
    best = solve(problem, method, callback=alone.append)
    first = [progress.bound for progress in alone if progress.bound is not None][:1]
    for gap in gaps:
        seen: list[Progress] = []
        found = solve(problem, method, gap=gap, callback=seen.append)
        if best.objective is None:
            assert found.objective is None
            continue
        slack = 1e-9 * abs(best.objective) + 1e-15
        for bound in [progress.bound for progress in seen if progress.bound is not None] + first:
            assert sign * problem.widened(bound, problem.scale) <= sign * found.bound + slack
        assert sign * found.bound <= sign * best.objective + slack
        if problem.kind in NEVER_NEGATIVE:
            assert found.bound >= 0.0


@pytest.mark.parametrize(("method", "problem"), CASES)
def test_bound_is_what_was_proven(method: type[Method], problem: Problem) -> None:
    """Tests that no exact method reports its target as its bound, nor loses a bound that it
    knew.
    """
    check_bounds(problem, method(), 0.9, 10.0)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    tasks=st.integers(2, 7),
    length=st.integers(1, 3),
    gap=st.floats(0.0, 2.0),
)
def test_bound_of_the_pipelined_search(seed: int, tasks: int, length: int, gap: float) -> None:
    """Tests that the bound of a search over pipeline orders is that of its parts, whatever gap
    prunes them.
    """
    problem = generate(
        "serving-latency/paper-1", tasks=tasks, max_input=60, max_output=12, seed=seed
    )
    check_bounds(dataclasses.replace(problem, max_speculation_length=length), "exact", gap)


def test_bound_above_the_target() -> None:
    """Tests that at a gap of 0.9 the bound is that of the stages, far above a tenth of the plan."""
    problem = generate("serving-latency/paper-1", tasks=20, seed=1)
    found = solve(problem, "exact", gap=0.9)
    assert found.bound > 0.4 * found.objective
