"""What the statuses of HiGHS, Pyomo and CVXPY mean, member by member, and what a spent limit of
work leaves.
"""

from __future__ import annotations

from typing import Any

import cvxpy.settings
import highspy
import numpy as np
import pytest
from helpers.program_endings import end_programs_as
from helpers.untyped import generate, solve
from pyomo.contrib.solver.common.results import TerminationCondition

from specopt import Termination
from specopt.models.errors import OutOfTime, OutOfWork
from specopt.solvers.budget import Budget
from specopt.solvers.highs import Highs
from specopt.solvers.solver_status import MEANINGS, termination_of
from specopt.solvers.verification_batch import threshold
from specopt.solvers.verification_batch.threshold import Threshold, knapsack

CVXPY = {
    getattr(cvxpy.settings, name)
    for name in dir(cvxpy.settings)
    if name.partition("_")[0] in ("OPTIMAL", "INFEASIBLE", "UNBOUNDED")
    or name in ("USER_LIMIT", "SOLVER_ERROR")
}

PROVEN = {
    "kOptimal",
    "kModelEmpty",
    "kInfeasible",
    "kUnboundedOrInfeasible",
    "convergenceCriteriaSatisfied",
    "emptyModel",
    "provenInfeasible",
    "infeasibleOrUnbounded",
    "optimal",
    "optimal_inaccurate",
}

FAILED = {
    "kInterrupt",
    "kHighsInterrupt",
    "kMemoryLimit",
    "kUnbounded",
    "kUnknown",
    "kNotset",
    "kLoadError",
    "kModelError",
    "kPresolveError",
    "kSolveError",
    "kPostsolveError",
    "interrupted",
    "unbounded",
    "locallyInfeasible",
    "minStepLength",
    "error",
    "licensingProblems",
    "unknown",
    "infeasible",
    "infeasible_inaccurate",
    "infeasible_or_unbounded",
    "unbounded_inaccurate",
    "solver_error",
}


def test_every_status_has_one_meaning() -> None:
    """Tests that each status of the three libraries has one meaning, or is a failure, and that
    nothing else has one.
    """
    listed = [name for names in MEANINGS.values() for name in names]
    known = {*highspy.HighsModelStatus.__members__, *TerminationCondition.__members__, *CVXPY}
    assert len(CVXPY) == 9
    assert sorted([*listed, *FAILED]) == sorted(known)


@pytest.mark.parametrize(
    "status",
    [*highspy.HighsModelStatus.__members__.values(), *TerminationCondition, *sorted(CVXPY)],
    ids=str,
)
def test_only_ends_that_prove_something_count_as_proofs(status: Any) -> None:
    """Tests that no limit, error or interruption counts as a proof, and that limits are called
    limits.
    """
    ended, name = termination_of(status), getattr(status, "name", status)
    assert (ended in (Termination.CONVERGED, Termination.INFEASIBLE)) == (name in PROVEN)
    assert (ended is Termination.INTERRUPTED) == (name in FAILED)
    if "infeasible" not in name.lower():
        assert ended is not Termination.INFEASIBLE
    if name in PROVEN or "Memory" in name:
        return
    limits = (Termination.TIME_LIMIT, Termination.WORK_LIMIT)
    assert (ended in limits) == (name == "user_limit" or "Limit" in name or "kObjective" in name)
    assert (ended is Termination.TIME_LIMIT) == ("Time" in name)


def test_a_status_of_a_later_version_proves_nothing() -> None:
    """Tests that an unknown status is a failure."""
    assert termination_of("kNewInHighs3") is Termination.INTERRUPTED


def ended_by(
    monkeypatch: pytest.MonkeyPatch, status: highspy.HighsModelStatus, *, found: bool
) -> None:
    """Let HiGHS report a status, and whether it found a solution."""
    info = type(
        "Info",
        (),
        {"mip_node_count": 5, "primal_solution_status": 2 if found else 0, "mip_dual_bound": 2e4},
    )
    monkeypatch.setattr(Highs, "getModelStatus", lambda self: status)
    monkeypatch.setattr(Highs, "getInfo", lambda self: info)


@pytest.mark.parametrize(
    ("status", "raised"), [("kTimeLimit", OutOfTime), ("kSolutionLimit", OutOfWork)]
)
def test_a_spent_limit_without_a_choice_ends_the_method(
    monkeypatch: pytest.MonkeyPatch, status: str, raised: type[Exception]
) -> None:
    """Tests that a knapsack without a choice by the end of time or work raises what the budget
    raises.
    """
    ended_by(monkeypatch, highspy.HighsModelStatus.__members__[status], found=False)
    with pytest.raises(raised):
        knapsack(
            np.ones(3),
            np.ones(3),
            np.ones(3),
            2.0,
            2.0,
            0.0,
            Budget(generate("verification-batch/warm", requests=1)),
        )


@pytest.mark.parametrize(
    "name", ["kTimeLimit", "kSolutionLimit", "kSolveError", "kInfeasible", "kUnknown"]
)
def test_no_end_of_highs_loses_the_plan(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Tests that `threshold` returns its plan and a valid bound, however HiGHS ends and whatever it
    found.
    """
    status = highspy.HighsModelStatus.__members__[name]
    problem = generate("verification-batch/mixed", requests=12, seed=3)
    best = solve(problem).objective
    monkeypatch.setattr(Threshold, "few_labels", -1)
    monkeypatch.setattr(threshold, "MEETING", -1)
    for found in (True, False):
        with monkeypatch.context() as patched:
            ended_by(patched, status, found=found)
            patched.setattr(
                Highs, "getSolution", lambda self: type("Solution", (), {"col_value": []})
            )
            result = solve(problem, Threshold(), time_limit=60.0)
        assert result.plan is not None
        assert "refuted" not in result.stats
        assert result.bound >= best * (1 - 1e-9)


@pytest.mark.parametrize(
    ("family", "parameters"),
    [
        ("draft-allocation/uniform", {"clients": 3, "budget": 5}),
        ("prompt-chunking/random", {"prompt_tokens": 6}),
        ("verification-batch/mixed", {"requests": 6}),
    ],
)
def test_a_solver_that_denies_a_known_plan_is_not_believed(
    family: str, parameters: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a program that is called infeasible leaves the plan that is known, and proves
    nothing.
    """
    end_programs_as(TerminationCondition.provenInfeasible, monkeypatch)
    result = solve(generate(family, seed=1, **parameters), "milp")
    assert result.plan is not None and result.termination is Termination.INTERRUPTED
    assert "refuted" not in result.stats


def test_work_that_is_spent_in_highs_keeps_plan_and_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the default ends by its limit of work, with plan and bound, where HiGHS spends all
    that is left.
    """
    problem = generate("verification-batch/mixed", requests=12, seed=3)
    monkeypatch.setattr(Threshold, "few_labels", -1)
    monkeypatch.setattr(threshold, "MEETING", -1)
    monkeypatch.setattr("specopt.solvers.auto.WORK_SECONDS", 0.9 * threshold.SECONDS_PER_NODE)
    result = solve(problem)
    assert result.plan is not None and result.bound >= result.objective
    assert result.termination in (Termination.WORK_LIMIT, Termination.CONVERGED)
