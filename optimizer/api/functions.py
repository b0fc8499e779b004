"""Methods made from plain functions that return a plan for a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from specopt.kinds.answers import Solver, plan_of_answer
from specopt.models.errors import InvalidInput
from specopt.models.problem import Problem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Method, Outcome

MethodLike = str | Method | Solver
"""Types accepted as a method: a name, a method, or a function that maps a problem to a plan."""


def is_function(method: object) -> bool:
    """Return whether a method argument is a plain function, not a name, a method or a class."""
    return callable(method) and not isinstance(method, (str, Method, type))


@cache
def method_of_function(function: Callable[[Any], Any], problem: type[Problem]) -> Method:
    """Wrap a function as a method. Results of such a method have no bound."""

    @dataclass(frozen=True)
    class Function(Method):
        name = getattr(function, "__name__", type(function).__name__)
        solves = problem
        source = f"{function.__module__}.{name}"
        guarantee = "none"
        complexity = "that of the function"
        may_fail = True
        called = staticmethod(function)

        def run(self, problem: Any, budget: Budget) -> Outcome:
            """Call the function once."""
            plan = plan_of_answer(self.called(problem), problem)
            if plan is not None:
                problem.expect_plan(plan)
                if violations := problem.violations(plan):
                    raise InvalidInput(f"{self.name}: the plan violates: {violations[0]}")
            return Outcome(plan=plan)

    Function.__module__ = function.__module__  # results look up their sources in this module
    return Function()
