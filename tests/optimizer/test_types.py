"""What type checkers know of results (mypy reads this file in `make check`), and results as values
and tables.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pytest

import specopt
from specopt import (
    InvalidInput,
    MissingDependency,
    Result,
    ServingLatencyPlan,
    ServingLatencyProblem,
    VerificationBatchPlan,
    VerificationBatchProblem,
)
from specopt.models.pass_time import VerificationTime
from specopt.models.sweep import Condition, Measurement, Point, Sweep

PROBLEM = VerificationBatchProblem(
    now_seconds=0.0,
    memory_bytes=10.0,
    expected_tokens=np.array([2.0, 1.0]),
    new_tokens=np.array([1, 1]),
    cached_tokens=np.array([0, 0]),
    request_memory_bytes=np.array([1.0, 1.0]),
    deadline_seconds=np.array([9.0, 9.0]),
    estimator=VerificationTime(
        seconds_per_new_token=1.0,
        seconds_per_interaction=0.0,
        seconds_per_cached_token=0.0,
        overhead_seconds=0.0,
    ),
)


def typed(problem: ServingLatencyProblem, path: Path) -> None:
    """Hold what type checkers infer; they read it, nothing calls it."""
    result = specopt.solve(problem)
    assert_type(result, Result[ServingLatencyPlan])
    length: int = result.plan.speculation_length
    assert length >= 0
    result.plan.speculation_lenght  # type: ignore[union-attr]  # noqa: B018 - misspelt, and found
    assert_type(specopt.load(path, VerificationBatchProblem), VerificationBatchProblem)
    assert_type(specopt.load(path, Result[VerificationBatchPlan]), Result[VerificationBatchPlan])


def result(**changes: Any) -> Result[VerificationBatchPlan]:
    """Return a result of the problem, with changes."""
    plan = VerificationBatchPlan(batch=np.array([1, 0]))
    found: Result[VerificationBatchPlan] = Result(
        kind=PROBLEM.kind,
        problem_sha256=PROBLEM.sha256,
        method="hand",
        status=specopt.Status.FEASIBLE,
        termination=specopt.Termination.CONVERGED,
        plan=plan,
        objective=3.0,
    )
    return dataclasses.replace(found, **changes)


def test_results_compare_by_value() -> None:
    """Tests that results are equal if all that they say is, plans included, and differ else."""
    assert result() == result()
    assert result() != result(objective=2.0)
    assert result() != result(plan=VerificationBatchPlan(batch=np.array([0])))
    assert result() != result().to_dict()


def test_loading_what_is_expected(tmp_path: Path) -> None:
    """Tests that a file is read as what it should hold, and that another kind, plan or nature is
    refused.
    """
    problem = tmp_path / "p.json"
    solved = tmp_path / "r.json"
    specopt.save(PROBLEM, problem)
    specopt.save(result(), solved)
    assert specopt.load(problem, VerificationBatchProblem) == PROBLEM
    assert (
        specopt.load(solved, Result)
        == specopt.load(solved, Result[VerificationBatchPlan])
        == result()
    )
    for path, expected, words in (
        (
            problem,
            specopt.DraftAllocationProblem,
            "expected DraftAllocationProblem, got a problem",
        ),
        (problem, Result, "expected a result, got a problem of kind verification-batch"),
        (
            solved,
            VerificationBatchProblem,
            "expected VerificationBatchProblem, got a result of kind verification-batch",
        ),
        (
            solved,
            Result[specopt.DraftAllocationPlan],
            r"DraftAllocationPlan\], got a result of kind verification-batch",
        ),
    ):
        with pytest.raises(InvalidInput, match=words):
            specopt.load(path, expected)


def test_plans_and_sweeps_are_tables() -> None:
    """Tests that rows of plans, results and sweeps become tables, and that what has no rows is
    refused.
    """
    assert specopt.to_arrow(result()).to_pylist() == [
        {"position": 0, "request": 1},
        {"position": 1, "request": 0},
    ]
    assert specopt.to_arrow(result().plan) == specopt.to_arrow(result())
    sweep = Sweep(
        (
            Measurement(Point(Condition(4), 3), 95.3, 2.5),
            Measurement(Point(Condition(4), None), 81.0),
        )
    )
    assert specopt.to_arrow(sweep).column("draft_length").to_pylist() == [3, None]
    assert specopt.to_arrow(specopt.Comparison([])).num_rows == 0
    for nothing in (result(plan=None), PROBLEM):
        with pytest.raises(InvalidInput, match="table: expected a plan"):
            specopt.to_arrow(nothing)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library: str) -> None:
    """Tests that a data frame has a plan's rows; where its library is missing one message says what
    to install.
    """
    convert = {"pandas": specopt.to_pandas, "polars": specopt.to_polars}[library]
    try:
        frame = convert(result())
    except MissingDependency as error:
        assert str(error) == f"data frames need {library}; run pip install {library}"
        pytest.skip(f"{library} is not installed")
    assert list(frame.columns) == ["position", "request"]
    assert frame["request"].to_list() == [1, 0]
