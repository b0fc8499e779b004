"""Rules: a fixed window, and thresholds on scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.method import DraftStoppingMethod, best_window, rule
from specopt.solvers.draft_stopping.prepare import Flags, Prepared, window_plan
from specopt.solvers.method import Outcome


def _flagging(most: int, flagged: Flags, budget: Budget, **stats: object) -> Outcome:
    """Return the outcome of stopping at flagged scores and at a window."""
    return rule(window_plan(most, flagged), budget, **stats, flagged=np.flatnonzero(flagged).tolist())


@dataclass(frozen=True)
class FixedWindow(DraftStoppingMethod):
    """The best fixed window: no score is read."""

    name: ClassVar[str] = "fixed-window"
    source: ClassVar[str] = "the usual rule; paper 2, Eq. 5"
    guarantee: ClassVar[str] = "best among fixed windows"
    complexity: ClassVar[str] = "O(C L)"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Take the window that is offered first."""
        window, _ = best_window(prepared, prepared.none_flagged)
        return Outcome(plan=budget.incumbent, bound=budget.bound, stats={"window": window})


@dataclass(frozen=True)
class FirstRejection(DraftStoppingMethod):
    """Draft up to L tokens and stop at the first that is more likely rejected than accepted, as paper 2 does.

    How likely a token is accepted before its score is read is the share of accepted ones among those that the verifier
    judges in rounds of L tokens: what a predictor is trained on.
    """

    name: ClassVar[str] = "first-rejection"
    source: ClassVar[str] = "paper 2, Eq. 25-26"
    guarantee: ClassVar[str] = "none: may be slower than a fixed window"
    complexity: ClassVar[str] = "O(C L + B)"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Flag the scores that rejections have more often."""
        share = prepared.mean_rate
        flagged = (1.0 - share) * prepared.scores.first_rejection > share * prepared.scores.accepted
        return _flagging(prepared.most, flagged, budget)


@dataclass(frozen=True)
class ConfidenceThreshold(DraftStoppingMethod):
    """The best threshold on how confident a score makes of its token, together with the best window.

    A score's confidence is its likelihood ratio, acceptance against first rejection: what it says of the token alone.
    """

    name: ClassVar[str] = "confidence-threshold"
    source: ClassVar[str] = "paper 4, Eq. 5"
    guarantee: ClassVar[str] = "best among thresholds and windows: never slower than the best fixed window"
    complexity: ClassVar[str] = "O(B (B + C L))"

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
        return _flagging(window, flagged, budget, window=window)
