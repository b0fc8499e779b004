"""Draft the same number of tokens in every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.draft_stopping import DraftStoppingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.method import DraftStoppingMethod, offer_first_plan
from specopt.solvers.draft_stopping.prepare import prepare
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class FixedWindow(DraftStoppingMethod):
    """The best fixed window: no score is read."""

    name: ClassVar[str] = "fixed-window"
    source: ClassVar[str] = "the usual rule; paper 2, Eq. 5"
    guarantee: ClassVar[str] = "best among fixed windows"
    complexity: ClassVar[str] = "O(C L)"

    def run(self, problem: DraftStoppingProblem, budget: Budget) -> Outcome:
        """Try every window."""
        window = offer_first_plan(prepare(problem), budget)
        return Outcome(plan=budget.incumbent, bound=budget.bound, stats={"window": window})
