"""No verdict, optimum or gap depends on the unit of anything, or on when a clock began."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from helpers.units import in_other_seconds, in_other_worth
from hypothesis import given, settings
from hypothesis import strategies as st
from small_instances.fair_goodput import declared

from specopt import (
    DraftAllocationPlan,
    FairGoodputProblem,
    Problem,
    Schedule,
    VerificationBatchPlan,
    VerificationBatchProblem,
    generate,
    solve,
)
from specopt.testing.strategies import problems

SMALL = (
    "serving-latency",
    "verification-batch",
    "prompt-chunking",
    "draft-control",
    "draft-allocation",
    "draft-stopping",
    "fair-goodput",
)
UNITS = st.sampled_from([1e-12, 1e-6, 1e6, 1e12])
NOVEMBER = 1.76e9
"""Seconds of a Unix clock."""


def same(problem: Problem, other: Problem) -> None:
    """Check that two forms of one problem get the same verdict and gap."""
    ours, theirs = solve(problem), solve(other)
    assert theirs.status is ours.status
    assert (theirs.gap is None) == (ours.gap is None)
    if ours.gap is not None:
        assert theirs.gap == pytest.approx(ours.gap, rel=1e-3, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SMALL)
@settings(max_examples=25)
@given(data=st.data(), factor=UNITS)
def test_the_unit_of_time_changes_no_verdict(kind: str, data: st.DataObject, factor: float) -> None:
    """Tests that a problem whose seconds are counted in another unit gets the same status and
    gap.
    """
    problem: Problem = data.draw(problems(kind))
    same(problem, in_other_seconds(problem, factor))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["draft-allocation", "fair-goodput", "verification-batch"])
@settings(max_examples=25)
@given(data=st.data(), factor=UNITS)
def test_the_unit_of_weights_changes_no_verdict(
    kind: str, data: st.DataObject, factor: float
) -> None:
    """Tests that weights in another unit change neither status nor gap."""
    problem: Problem = data.draw(problems(kind))
    same(problem, in_other_worth(problem, factor))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), requests=st.integers(1, 60))
def test_readings_of_a_unix_clock_are_resolved(seed: int, requests: int) -> None:
    """Tests that on a clock that began in 1970 every method plans as on the durations that its
    readings hold.

    A bound may be weaker by what the spacing of two readings lets through: it is concave in the
    time that a batch has beyond its overhead, so it grows at most as much as that time does,
    relatively.
    """
    near: Any = generate("verification-batch/mixed", requests=requests, seed=seed)
    start = near.now_seconds
    far = dataclasses.replace(
        near, now_seconds=NOVEMBER, deadline_seconds=NOVEMBER + (near.deadline_seconds - start)
    )
    held = dataclasses.replace(
        near, now_seconds=0.0, deadline_seconds=far.deadline_seconds - NOVEMBER
    )
    rooms = [
        deadline - held.estimator.overhead_seconds
        for i, deadline in enumerate(held.deadline_seconds)
        if not held.violations(VerificationBatchPlan(batch=np.array([i])))
    ]
    more = 2.0 * np.spacing(NOVEMBER) / min(rooms, default=math.inf)
    for method in (None, "sweep", "fcfs", "algorithm-1-drop"):
        ours = solve(held, method)
        theirs = solve(far, method)
        assert (theirs.objective, theirs.plan) == (ours.objective, ours.plan)
        assert (theirs.bound is None) == (ours.bound is None)
        if theirs.bound is not None and ours.bound is not None:
            assert ours.bound <= theirs.bound <= ours.bound * (1.0 + more + 1e-9)


def test_memory_has_no_absolute_slack() -> None:
    """Tests that a request that needs a ten-billionth of a byte more than there is violates,
    whatever the unit.
    """
    problem = generate("verification-batch/warm", requests=1, seed=1)
    assert isinstance(problem, VerificationBatchProblem)
    plan = VerificationBatchPlan(batch=np.array([0]))
    for needed, violated in ((2e-10, True), (1e-10 * (1 + 5e-10), False)):
        tiny = dataclasses.replace(
            problem, memory_bytes=1e-10, request_memory_bytes=np.array([needed])
        )
        assert any("memory" in violation for violation in tiny.violations(plan)) is violated


@pytest.mark.parametrize(
    ("excess", "violated"), [(5e-10, False), (3e-9, True), (1e-6, True), (5e-3, True)]
)
def test_tolerances_are_a_billionth(excess: float, violated: bool) -> None:
    """Tests that shares of bandwidth and of rounds may exceed 1 by a billionth of it, and by no
    more.
    """
    problem: Any = generate("serving-latency/paper-1", tasks=4, seed=1)
    plan: Any = solve(problem, "no-batching").plan
    wider = dataclasses.replace(plan, bandwidth_share=plan.bandwidth_share * (1.0 + excess))
    assert any("bandwidth_share" in text for text in problem.violations(wider)) is violated
    fair = FairGoodputProblem(acceptance_rates=np.array([0.5, 0.5]), budget_tokens=4)
    schedule = Schedule.of([0.5, 0.5 + excess], [[4, 0], [0, 4]])
    assert (
        any("shares sum" in text for text in fair.violations(declared(fair, schedule))) is violated
    )
    honest = declared(fair, Schedule.of([0.5, 0.5], [[4, 0], [0, 4]]))
    boast = declared(fair, honest.schedule, 1.0 + excess)
    assert any("goodput[0]" in text for text in fair.violations(boast)) is violated
    due = dataclasses.replace(fair, min_goodput=honest.goodput * (1.0 + excess))
    assert any("min_goodput" in text for text in due.violations(honest)) is violated


def test_token_budgets_are_exact() -> None:
    """Tests that one token beyond a budget of 10^12 violates, and that a sum beyond 64 bits is
    right where floating point would round it.
    """
    small: Any = generate("draft-allocation/uniform", clients=2, seed=1)
    problem = dataclasses.replace(small, budget_tokens=10**12)
    assert not problem.violations(DraftAllocationPlan(draft_tokens=np.array([10**12 - 7, 7])))
    assert problem.violations(DraftAllocationPlan(draft_tokens=np.array([10**12 - 7, 8])))
    many = FairGoodputProblem(acceptance_rates=np.full(20_000, 0.5), budget_tokens=10**15)
    schedule = Schedule.of([1.0], [[10**15] * 19_999 + [10**15 - 1]])
    assert (
        "the draft tokens sum to 19999999999999999999"
        in many.violations(declared(many, schedule))[0]
    )
