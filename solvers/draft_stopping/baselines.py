"""Baselines for `draft-stopping`: a fixed window, no drafts, and rules that look at one score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.method import DraftStoppingMethod, best_window
from specopt.solvers.draft_stopping.prepare import Flags, Prepared, window_plan
from specopt.solvers.method import Outcome


def flagging(most: int, flagged: Flags, budget: Budget, **stats: int) -> Outcome:
    """Return the outcome of stopping at flagged scores and at a window."""
    found = {"flagged": np.flatnonzero(flagged).tolist()}
    return Outcome(plan=window_plan(most, flagged), bound=budget.bound, stats=stats | found)


@dataclass(frozen=True)
class ConfidenceThreshold(DraftStoppingMethod):
    """Combine the best window with the best threshold on the confidence of a token, as given by its
    score.

    A score's confidence is its likelihood ratio, acceptance against first rejection, of
    the token alone.
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


@dataclass(frozen=True)
class FirstRejection(DraftStoppingMethod):
    """Draft up to L tokens and stop at the first one that is more likely to be rejected than
    accepted, as in paper 2.

    How likely a token is accepted before its score is read is the share of accepted ones among
    those that the verifier judges in rounds of L tokens, on which a predictor is trained.
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


@dataclass(frozen=True)
class FixedWindow(DraftStoppingMethod):
    """Use the best fixed window, without reading scores."""

    name = "fixed-window"
    source = "the usual rule; paper 2, Eq. 5"
    guarantee = "best among fixed windows"
    complexity = "O(C L)"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Take the window that is offered first."""
        window, _ = best_window(prepared, prepared.none_flagged)
        return Outcome(plan=budget.incumbent, bound=budget.bound, stats={"window": window})


@dataclass(frozen=True)
class NoDrafts(DraftStoppingMethod):
    """Draft nothing, as a lower reference for the other rules."""

    name = "no-drafts"
    source = "the large model alone"
    guarantee = "none"
    complexity = "O(1)"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Draft nothing."""
        return Outcome(plan=window_plan(0, prepared.none_flagged), bound=budget.bound)


BASELINES = (
    ConfidenceThreshold,
    FirstRejection,
    FixedWindow,
    NoDrafts,
)
