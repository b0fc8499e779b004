"""No drafts in any state: what every other policy has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, certify, first_actions
from specopt.solvers.draft_control.prepare import Prepared
from specopt.solvers.method import Condition, Outcome


@dataclass(frozen=True)
class NoDrafts(DraftControlMethod):
    """No drafts in any state: what every other policy has to beat."""

    name = "no-drafts"
    source = "the large model alone"
    guarantee = "none"
    complexity = "O(S), and O(S^3) for its bound"
    takes = (
        Condition(
            "drafts of 0 tokens",
            lambda method, problem: f"drafts from {low} on" if (low := problem.draft_lengths[0]) else None,
        ),
    )

    def search(self, prepared: Prepared, kernels: Any, budget: Budget) -> Outcome:
        """Draft nothing: the first actions."""
        return certify(kernels, prepared, *first_actions(prepared), budget)
