"""`toy`: how many things to take, each worth the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from specopt.models.problem import Evaluation, Plan, Problem


@dataclass(frozen=True, kw_only=True, eq=False)
class ToyPlan(Plan):
    """How many to take."""

    count: int


@dataclass(frozen=True, kw_only=True, eq=False)
class ToyProblem(Problem[ToyPlan]):
    """Take at most `limit` things worth `value` each."""

    kind: ClassVar[str] = "toy"
    plan_type: ClassVar[type[Plan]] = ToyPlan
    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"
    objective_label: ClassVar[str] = "worth in all"

    limit: int
    value: float = 1.0

    def evaluate(self, plan: ToyPlan) -> Evaluation:
        """Return the worth of what is taken."""
        return Evaluation(plan.count * self.value, {"worth": plan.count * self.value})

    def violations(self, plan: ToyPlan) -> list[str]:
        """Say if too many are taken."""
        return (
            [f"{plan.count} taken, at most {self.limit} allowed"] if plan.count > self.limit else []
        )
