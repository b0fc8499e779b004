"""Draft up to L tokens and stop at the first that is more likely rejected than accepted, as paper 2 does."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.method import DraftStoppingMethod, flagging
from specopt.solvers.draft_stopping.prepare import Prepared
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class FirstRejection(DraftStoppingMethod):
    """Draft up to L tokens and stop at the first that is more likely rejected than accepted, as paper 2 does.

    How likely a token is accepted before its score is read is the share of accepted ones among those that the verifier
    judges in rounds of L tokens: what a predictor is trained on.
    """

    name = "first-rejection"
    source = "paper 2, Eq. 25-26"
    guarantee = "none: may be slower than a fixed window"
    complexity = "O(C L + B)"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Flag the scores that rejections have more often."""
        share = prepared.mean_rate
        flagged = (1.0 - share) * prepared.scores.first_rejection > share * prepared.scores.accepted
        return flagging(prepared.most, flagged, budget)
