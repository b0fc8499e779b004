"""Functions that extract plans from the return values of solvers, and evaluate these plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from specopt.models.fields import describe, printable
from specopt.models.judge import verify
from specopt.models.problem import Plan, Problem
from specopt.models.result import Result

Answer = Plan | Result | Mapping[str, Any] | None
Solver = Callable[[Any], Answer]


class NotConformant(AssertionError):
    """Exception for a method or solver that violates a guarantee. The message names the guarantee.

    Parameters
    ----------
    message
        Description of the violated guarantee.
    problem
        Problem for which the guarantee is violated.
    """

    def __init__(self, message: str, problem: Problem | None = None) -> None:
        super().__init__(message)
        self.problem = problem


def plan_of_answer(answer: Answer, problem: Problem) -> Any:
    """Return the plan that is contained in a solver's return value.

    The return value may be a plan, the JSON form of a plan, a result, or None.
    """
    plan = answer.plan if isinstance(answer, Result) else answer
    return problem.plan_type.from_dict(plan) if isinstance(plan, Mapping) else plan


def planned(solver: Solver, problem: Problem) -> Plan | None:
    """Run a solver and return its plan, which must be feasible, or None if it finds no plan.

    Raises
    ------
    NotConformant
        If the solver fails, if it modifies the problem, or if its return value is neither None nor
        a feasible plan for the problem.
    """
    before = problem.to_dict()
    try:
        plan = plan_of_answer(solver(problem), problem)
    except Exception as error:
        raise NotConformant(
            printable(f"fails: {type(error).__name__}: {error}"), problem
        ) from error
    if problem.to_dict() != before:
        raise NotConformant("changes the problem", problem)
    if plan is None:
        return None
    if not isinstance(plan, problem.plan_type):
        expected = f"{problem.plan_type.__name__}, a result, its JSON form or None"
        raise NotConformant(
            f"did not return a plan: expected {expected}, got {describe(plan)}", problem
        )
    if violations := verify(problem, plan).violations:
        raise NotConformant(f"violates the problem: {violations[0]}", problem)
    return plan


def judged(solver: Solver, problem: Problem) -> float | None:
    """Run a solver and return the judge's objective for its plan, or None if it finds no plan."""
    plan = planned(solver, problem)
    return None if plan is None else problem.evaluate(plan).objective


def is_better(problem: Problem, objective: float, other: float, tolerance: float) -> bool:
    """Return whether an objective is better than another objective by more than a tolerance.

    The tolerance is relative. Whether lower or higher is better depends on the problem's sense.
    """
    ahead = objective < other if problem.sense == "minimize" else objective > other
    size = max(abs(objective), abs(other))
    return ahead and problem.distance(objective, other, problem.scale, size) > tolerance
