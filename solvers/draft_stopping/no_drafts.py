"""No drafts at all: what every other rule has to beat."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.method import DraftStoppingMethod, rule
from specopt.solvers.draft_stopping.prepare import Prepared, window_plan
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class NoDrafts(DraftStoppingMethod):
    """No drafts at all: what every other rule has to beat."""

    name = "no-drafts"
    source = "the large model alone"
    guarantee = "none"
    complexity = "O(1)"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Draft nothing."""
        return rule(window_plan(0, prepared.none_flagged), budget)
