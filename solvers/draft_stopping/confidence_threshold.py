"""Stop at the first score below a threshold, and at a window: the best of all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.draft_stopping import DraftStoppingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.method import DraftStoppingMethod, offer_first_plan, rule
from specopt.solvers.draft_stopping.prepare import prepare, window_plan
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class ConfidenceThreshold(DraftStoppingMethod):
    """The best threshold on how confident a score makes of its token, together with the best window.

    A score's confidence is its likelihood ratio, acceptance against first rejection: what it says of the token alone.
    """

    name: ClassVar[str] = "confidence-threshold"
    source: ClassVar[str] = "paper 4, Eq. 5"
    guarantee: ClassVar[str] = "best among thresholds and windows: never slower than the best fixed window"
    complexity: ClassVar[str] = "O(B (B + C L))"

    def run(self, problem: DraftStoppingProblem, budget: Budget) -> Outcome:
        """Try every threshold with every window."""
        prepared = prepare(problem)
        offer_first_plan(prepared, budget)
        confidence = prepared.scores.accepted / np.maximum(
            prepared.scores.accepted + prepared.scores.first_rejection, np.finfo(np.float64).tiny
        )
        best, found = -np.inf, (0, np.zeros(prepared.scores.bins, dtype=np.bool_))
        for threshold in [0.0, *np.unique(confidence)[1:].tolist()]:
            flagged = confidence < threshold
            ratios = prepared.ratio(*prepared.windows(flagged))
            window = int(np.argmax(ratios))
            if ratios[window] > best:
                best, found = float(ratios[window]), (window, flagged)
            budget.check()
        window, flagged = found
        return rule(window_plan(window, flagged), budget, window=window, flagged=np.flatnonzero(flagged).tolist())
