"""Baselines for `draft-stopping`: a fixed window, no drafts, and two rules based on scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.method import DraftStoppingMethod, best_window
from specopt.solvers.draft_stopping.prepare import Flags, Prepared, window_plan
from specopt.solvers.method import Outcome


def flagging(most: int, flagged: Flags, budget: Budget, **stats: int) -> Outcome:
    """Return the outcome of a rule that stops at a flagged score or after `most` tokens."""
    found = {"flagged": np.flatnonzero(flagged).tolist()}
    return Outcome(plan=window_plan(most, flagged), bound=budget.bound, stats=stats | found)


@dataclass(frozen=True)
class ConfidenceThreshold(DraftStoppingMethod):
    """Choose the best combination of a fixed window and a confidence threshold.

    The rule stops drafting at the first token whose confidence is below the threshold. The
    confidence of a score is p / (p + q), where p is the probability of the score given acceptance
    and q is the probability of the score given a first rejection.
    """

    name = "confidence-threshold"
    source = "paper 4, Eq. 5"
    guarantee = "best among thresholds and windows: never slower than the best fixed window"
    complexity = "O(B (B + C L))"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Evaluate every combination of a threshold and a window."""
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
    """Draft up to L tokens and stop at the first token that is more likely to be rejected than
    accepted, as in paper 2.

    The prior probability of acceptance is the share of accepted tokens among the tokens that the
    verifier judges in rounds of L tokens. A predictor is trained on such rounds.
    """

    name = "first-rejection"
    source = "paper 2, Eq. 25-26"
    guarantee = "none; may be slower than a fixed window"
    complexity = "O(C L + B)"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Flag the scores that make a first rejection more likely than acceptance."""
        share = prepared.mean_rate
        flagged = (1.0 - share) * prepared.scores.first_rejection > share * prepared.scores.accepted
        return flagging(prepared.most, flagged, budget)


@dataclass(frozen=True)
class FixedWindow(DraftStoppingMethod):
    """Use the best fixed window and ignore the scores."""

    name = "fixed-window"
    source = "the usual rule; paper 2, Eq. 5"
    guarantee = "best among fixed windows"
    complexity = "O(C L)"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Return the best fixed window, which the base class has already recorded."""
        window, _ = best_window(prepared, prepared.none_flagged)
        return Outcome.of(budget, stats={"window": window})


@dataclass(frozen=True)
class NoDrafts(DraftStoppingMethod):
    """Draft nothing, so that the large model generates every token."""

    name = "no-drafts"
    source = "the large model alone"
    guarantee = "none"
    complexity = "O(1)"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Return the plan that drafts nothing."""
        return Outcome(plan=window_plan(0, prepared.none_flagged), bound=budget.bound)


BASELINES = (
    ConfidenceThreshold,
    FirstRejection,
    FixedWindow,
    NoDrafts,
)
