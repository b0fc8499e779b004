"""Take all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.problem import Problem
from specopt.models.toy.problem import ToyPlan, ToyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Method, Outcome


@dataclass(frozen=True)
class AllOfThem(Method):
    """Take as many as there may be."""

    name: ClassVar[str] = "all-of-them"
    solves: ClassVar[type[Problem]] = ToyProblem
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "own"
    guarantee: ClassVar[str] = "optimal"
    complexity: ClassVar[str] = "O(1)"

    def run(self, problem: ToyProblem, budget: Budget) -> Outcome:
        """Take them."""
        plan = ToyPlan(count=problem.limit)
        budget.offer(plan)
        return Outcome(plan=plan, bound=problem.limit * problem.value)
