"""Plain functions from a problem to a plan: right ones pass, wrong ones are caught on a small
problem that is saved.
"""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from specopt import InvalidInput, VerificationBatchPlan, VerificationBatchProblem, load, solve
from specopt.kinds import KINDS
from specopt.testing import NotConformant, check_problem, check_solver

COUNT = itertools.count()


def greedy(problem: VerificationBatchProblem) -> dict[str, Any]:
    """Return the requests that fit, the most valuable first."""
    batch: list[int] = []
    for request in sorted(range(problem.requests), key=lambda i: -problem.expected_tokens[i]):
        if not problem.violations(VerificationBatchPlan.from_dict({"batch": [*batch, request]})):
            batch.append(request)
    return {"batch": batch}


def careless(problem: VerificationBatchProblem) -> dict[str, Any]:
    """Return all requests."""
    return {"batch": list(range(problem.requests))}


def fickle(problem: VerificationBatchProblem) -> dict[str, Any]:
    """Return nothing every other time."""
    return greedy(problem) if next(COUNT) % 2 else {"batch": []}


def lazy(problem: VerificationBatchProblem) -> None:
    """Return nothing at all."""


def broken(problem: VerificationBatchProblem) -> dict[str, Any]:
    """Fail on an empty queue."""
    return {"batch": [problem.expected_tokens.argmax()][:0]}


def vandal(problem: VerificationBatchProblem) -> dict[str, Any]:
    """Change the problem."""
    object.__setattr__(problem, "memory_bytes", problem.memory_bytes + 1)
    return {"batch": []}


def strange(problem: VerificationBatchProblem) -> Any:
    """Return a list."""
    return []


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_the_default_passes(kind: str, tmp_path: Path) -> None:
    """Tests that `solve` keeps what is asked of an exact solver, and that nothing is saved."""
    check_solver(solve, kind, exact=True, examples=5, sizes=(), tolerance=3e-9, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_heuristic_passes_as_such(tmp_path: Path) -> None:
    """Tests that a greedy rule is no failure as long as it claims nothing, the library included."""
    check_solver(greedy, "verification-batch", examples=30, folder=tmp_path)
    with pytest.raises(
        NotConformant,
        match=r"claims that .* is optimal, but the objective .* is possible|relation ",
    ):
        check_solver(greedy, "verification-batch", exact=True, folder=None)


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (careless, "violates the problem: batch: "),
        (broken, "fails: ValueError: "),
        pytest.param(fickle, "gives two answers to the same problem", marks=pytest.mark.nightly),
        pytest.param(
            lazy,
            "finds no plan, although a plan with objective 0.0 exists",
            marks=pytest.mark.nightly,
        ),
        pytest.param(vandal, "changes the problem", marks=pytest.mark.nightly),
        (
            strange,
            "did not return a plan: expected VerificationBatchPlan, a result, its JSON form or"
            " None",
        ),
    ],
)
def test_wrong_solvers_are_caught(solver: Any, message: str, tmp_path: Path) -> None:
    """Tests that each failure is named, shrunk, and saved as a problem on which the same check
    fails again.
    """
    with pytest.raises(NotConformant, match=message) as error:
        check_solver(solver, "verification-batch", folder=tmp_path)
    (path,) = tmp_path.iterdir()
    assert f"{solver.__name__} on verification-batch" in str(error.value) and str(path) in str(
        error.value
    )
    problem = load(path)
    assert isinstance(problem, VerificationBatchProblem) and problem.requests <= 3
    if solver is not fickle:
        with pytest.raises(NotConformant, match=message):
            check_problem(solver, problem)


def test_the_library_is_met(tmp_path: Path) -> None:
    """Tests that a solver that fails on large problems only passes the random ones and fails the
    library's.
    """

    def up_to_ten(problem: VerificationBatchProblem) -> Any:
        return greedy(problem) if problem.requests <= 10 else careless(problem)

    check_solver(up_to_ten, "verification-batch", examples=10, sizes=(), folder=None)
    with pytest.raises(
        NotConformant, match=r"up_to_ten on verification-batch/\S+ \(.*\): violates"
    ):
        check_solver(up_to_ten, "verification-batch", examples=0, sizes=["paper"], folder=None)


def test_wrong_arguments_are_named() -> None:
    """Tests that unknown sizes, kinds and counts are refused before anything runs."""
    with pytest.raises(InvalidInput, match=r"sizes: expected one or more of .*small.*, got 'tiny'"):
        check_solver(lazy, "verification-batch", sizes=["tiny"])
    with pytest.raises(InvalidInput, match="kind: expected one of"):
        check_solver(lazy, "batches")
    with pytest.raises(InvalidInput, match="examples: expected"):
        check_solver(lazy, "verification-batch", examples=-1)


def test_named_methods_are_functions_too() -> None:
    """Tests that a named method passes through `partial`, infeasible problems included."""
    check_solver(
        partial(solve, method="brute-force"), "draft-allocation", exact=True, examples=10, sizes=()
    )
