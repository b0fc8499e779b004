"""The best fixed window: no score is read."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.method import DraftStoppingMethod, best_window
from specopt.solvers.draft_stopping.prepare import Prepared
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class FixedWindow(DraftStoppingMethod):
    """The best fixed window: no score is read."""

    name = "fixed-window"
    source = "the usual rule; paper 2, Eq. 5"
    guarantee = "best among fixed windows"
    complexity = "O(C L)"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Take the window that is offered first."""
        window, _ = best_window(prepared, prepared.none_flagged)
        return Outcome(plan=budget.incumbent, bound=budget.bound, stats={"window": window})
