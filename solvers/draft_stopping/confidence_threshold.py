"""The best threshold on how confident a score makes of its token, together with the best window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.method import DraftStoppingMethod, best_window, flagging
from specopt.solvers.draft_stopping.prepare import Prepared
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class ConfidenceThreshold(DraftStoppingMethod):
    """The best threshold on how confident a score makes of its token, together with the best window.

    A score's confidence is its likelihood ratio, acceptance against first rejection: what it says of the token alone.
    """

    name = "confidence-threshold"
    source = "paper 4, Eq. 5"
    guarantee = "best among thresholds and windows: never slower than the best fixed window"
    complexity = "O(B (B + C L))"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Try every threshold with every window."""
        confidence = prepared.scores.accepted / np.maximum(
            prepared.scores.accepted + prepared.scores.first_rejection, np.finfo(np.float64).tiny
        )
        best, window, flagged = -np.inf, 0, prepared.none_flagged
        for threshold in [0.0, *np.unique(confidence)[1:].tolist()]:
            below = confidence < threshold
            longest, ratio = best_window(prepared, below)
            if ratio > best:
                best, window, flagged = ratio, longest, below
            budget.check()
        return flagging(window, flagged, budget, window=window)
