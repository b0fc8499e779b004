"""The judge of verification batching against exact rational arithmetic, and what the problem
refuses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import verification_batch as naive

from specopt import (
    InvalidInput,
    VerificationBatchPlan,
    VerificationBatchProblem,
)
from specopt.kinds.verification_batch.strategies import problems as verification_batches

BASE: dict[str, Any] = {
    "format": "specopt/1",
    "kind": "verification-batch",
    "now_seconds": 1.0,
    "memory_bytes": 10.0,
    "expected_tokens": [3.0, 2.0, 2.5],
    "new_tokens": [4, 2, 1],
    "cached_tokens": [0, 10, 20],
    "request_memory_bytes": [4.0, 6.0, 2.0],
    "deadline_seconds": [1.5, 2.0, 3.0],
    "estimator": {
        "seconds_per_new_token": 0.05,
        "seconds_per_interaction": 0.005,
        "seconds_per_cached_token": 0.01,
        "overhead_seconds": 0.125,
    },
}


def problem(**fields: Any) -> VerificationBatchProblem:
    """A problem of three requests, with some fields replaced."""
    return VerificationBatchProblem.from_dict(BASE | fields)


def plan(*batch: int) -> VerificationBatchPlan:
    """A plan."""
    return VerificationBatchPlan(batch=np.array(batch, dtype=np.int64))


@given(verification_batches(), st.data())
def test_judge_equals_naive(problem: VerificationBatchProblem, data: st.DataObject) -> None:
    """Tests that objective and verdict are the oracle's, feasible or not."""
    batch = data.draw(
        st.lists(st.sampled_from(range(problem.requests)), unique=True)
        if problem.requests
        else st.just([])
    )
    evaluation = problem.evaluate(plan(*batch))
    assert evaluation.objective == float(naive.objective(problem.to_dict(), batch))
    assert sum(evaluation.terms.values()) == evaluation.objective
    assert (problem.violations(plan(*batch)) == []) == naive.feasible(problem.to_dict(), batch)


def test_estimator_by_hand() -> None:
    """Tests that Eq. 18-19 give 0.05 * 2 + 0.005 * (10 + 2) * 2 + 0.01 * 10 for the second
    request.
    """
    estimator = problem().estimator
    weights = estimator.weights(problem().new_tokens, problem().cached_tokens)
    assert weights == pytest.approx([0.2 + 0.08, 0.1 + 0.12 + 0.1, 0.05 + 0.105 + 0.2])
    assert estimator.seconds(problem().new_tokens, problem().cached_tokens) == pytest.approx(
        0.125 + weights.sum()
    )


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ((0, 1), "batch: verification takes 0.725 s, but request 0 is due in 0.5 s (at 1.5 s)"),
        ((0, 1, 2), "batch: the requests need 12 bytes of memory, but only 10 are available"),
        ((1, 3), "batch[1]: expected a request below 3, got 3"),
        ((1, 1), "batch[1]: request 1 is already in the batch"),
    ],
)
def test_violations(batch: tuple[int, ...], message: str) -> None:
    """Tests that memory, deadlines, range and repetition are judged, one sentence each."""
    assert message in problem().violations(plan(*batch))


def test_every_member_is_judged() -> None:
    """Tests that each late member is named, also one whose batch the others delay."""
    found = problem(deadline_seconds=[1.1, 1.2, 9.0]).violations(plan(0, 1))
    assert [text.partition(", ")[2] for text in found] == [
        "but request 0 is due in 0.1 s (at 1.1 s)",
        "but request 1 is due in 0.2 s (at 1.2 s)",
    ]


def test_terms() -> None:
    """Tests that cold requests are those without a single cached token."""
    assert problem().evaluate(plan(0, 1, 2)).terms == {"cold_tokens": 3.0, "warm_tokens": 4.5}
    few = problem(cached_tokens=[1, 0, 0])
    assert few.evaluate(plan(0, 1, 2)).terms == {"cold_tokens": 4.5, "warm_tokens": 3.0}


@pytest.mark.parametrize(
    ("spacings", "feasible"), [(-1, True), (1, True), (2, True), (3, False), (100, False)]
)
def test_clock_readings_are_as_fine_as_they_are(spacings: int, feasible: bool) -> None:
    """Tests that on a Unix clock a batch may be late by the spacing of the two readings, and by no
    more.
    """
    now = 1.76e9
    late = problem(
        now_seconds=now,
        deadline_seconds=[now + 1.0 - spacings * float(np.spacing(now))] * 3,
        estimator=dict.fromkeys(BASE["estimator"], 0.0) | {"overhead_seconds": 1.0},
    )
    assert (late.violations(plan(0)) == []) is feasible


def test_defective_plans_have_no_objective() -> None:
    """Tests that a plan with unknown or repeated requests is refused."""
    for batch in ((3,), (0, 0)):
        with pytest.raises(InvalidInput, match="batch"):
            problem().evaluate(plan(*batch))


def test_empty() -> None:
    """Tests that the empty batch is feasible and worth 0, late requests and an empty queue
    included.
    """
    assert problem(deadline_seconds=[0.0, 0.0, 0.0]).violations(plan()) == []
    nobody = problem(**{key: [] for key, value in BASE.items() if isinstance(value, list)})
    assert nobody.requests == 0
    assert nobody.violations(plan()) == []
    assert nobody.evaluate(plan()).objective == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"deadline_seconds": [1.0]},
            "deadline_seconds: expected 3 entries, as in expected_tokens, got 1",
        ),
        ({"expected_tokens": [1e308, 1e308, 1e308]}, "expected_tokens: expected a finite sum"),
        (
            {"request_memory_bytes": [1e308, 1e308, 1e308]},
            "^request_memory_bytes: expected a finite sum",
        ),
        (
            {"estimator": BASE["estimator"] | {"seconds_per_new_token": 1e308}},
            "^estimator: expected a finite sum",
        ),
    ],
)
def test_refusals(fields: dict[str, Any], message: str) -> None:
    """Tests that a field outside its domain is named, with what was expected and what came."""
    with pytest.raises(InvalidInput, match=message):
        problem(**fields)
