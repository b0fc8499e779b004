"""The judge on results: whose plan it judges, and what a result may claim."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from specopt import (
    DraftAllocationPlan,
    DraftAllocationProblem,
    InvalidInput,
    PromptChunkingPlan,
    verify,
)
from specopt.models.result import Result, Status, Termination

PROBLEM = DraftAllocationProblem(
    acceptance_rates=np.array([0.5, 0.5]), weights=np.array([1.0, 1.0]), budget_tokens=2
)
PLAN = DraftAllocationPlan(draft_tokens=np.array([1, 1]))  # worth 2 (1 + 0.5)


def result(**fields: Any) -> Result:
    """A result that claims what its plan is worth, with some fields replaced."""
    claimed = Result(
        kind="draft-allocation",
        problem_sha256=PROBLEM.sha256,
        method="by-hand",
        plan=PLAN,
        objective=3.0,
        status=Status.FEASIBLE,
        termination=Termination.CONVERGED,
    )
    return dataclasses.replace(claimed, **fields)


@pytest.mark.parametrize(
    ("claim", "matches"),
    [
        (3.0, True),
        (3.0 + 2.9e-9, True),
        (3.0 + 3.1e-9, False),
        (3.0 - 3.1e-9, False),
        (-3.0, False),
        (None, True),
    ],
)
def test_claims(claim: float | None, matches: bool) -> None:
    """Tests that a claimed objective may be off by 1e-9 of the recomputed one, and that none may be
    claimed.
    """
    report = verify(PROBLEM, result(objective=claim))
    assert report.matches is matches
    assert report.objective == 3.0 and report.feasible
    assert report.terms == {"own_tokens": 2.0, "accepted_draft_tokens": 1.0}


def test_claims_of_nothing() -> None:
    """Tests that an objective of 0 matches 0 and nothing else, whatever its unit."""
    problem = dataclasses.replace(PROBLEM, weights=np.zeros(2))
    for claim, matches in ((0.0, True), (1e-30, False)):
        assert verify(problem, result(objective=claim, problem_sha256="")).matches is matches


def test_whose_plan() -> None:
    """Tests that a result without a digest is judged, and that a plan of another kind is refused by
    name.
    """
    assert verify(PROBLEM, result(problem_sha256="")).matches
    other = PromptChunkingPlan(chunks=np.array([1]))
    for wrong in (other, result(plan=other)):
        with pytest.raises(
            InvalidInput, match=r"^plan: expected DraftAllocationPlan, got PromptChunkingPlan$"
        ):
            verify(PROBLEM, wrong)
    with pytest.raises(InvalidInput, match=r"^plan: the result has no plan$"):
        verify(PROBLEM, result(plan=None))
    with pytest.raises(
        InvalidInput, match=r"^problem_sha256: the result belongs to another problem$"
    ):
        verify(PROBLEM, result(problem_sha256="XXXX"))


def test_senseless_plans() -> None:
    """Tests that a plan for another number of clients has violations, no objective, and matches
    nothing.
    """
    report = verify(PROBLEM, DraftAllocationPlan(draft_tokens=np.array([1])))
    assert (
        report.objective is None
        and report.violations
        and report.matches is False
        and report.terms == {}
    )


def test_what_is_violated() -> None:
    """Tests that a report lists the violations of a plan that has an objective, and that kinds must
    agree.
    """
    report = verify(
        PROBLEM, result(plan=DraftAllocationPlan(draft_tokens=np.array([1, 2])), objective=3.25)
    )
    assert (
        report.violations == ["draft_tokens: the sum is 3, but the budget is 2"]
        and not report.feasible
    )
    assert report.objective == 3.25 and report.matches
    with pytest.raises(
        InvalidInput,
        match=r"^kind: expected 'draft-allocation', the kind of the problem, got 'draft-control'$",
    ):
        verify(PROBLEM, result(kind="draft-control"))
