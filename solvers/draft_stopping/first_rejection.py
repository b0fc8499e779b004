"""Stop at the first predicted rejection (paper 2, Sec. 4.1)."""

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
class FirstRejection(DraftStoppingMethod):
    """Draft up to L tokens and stop at the first that is more likely rejected than accepted, as paper 2 does.

    How likely a token is accepted before its score is read is the share of accepted ones among those that the verifier
    judges in rounds of L tokens: what a predictor is trained on.
    """

    name: ClassVar[str] = "first-rejection"
    source: ClassVar[str] = "paper 2, Eq. 25-26"
    guarantee: ClassVar[str] = "none: may be slower than a fixed window"
    complexity: ClassVar[str] = "O(C L + B)"

    def run(self, problem: DraftStoppingProblem, budget: Budget) -> Outcome:
        """Flag the scores that rejections have more often."""
        prepared = prepare(problem)
        offer_first_plan(prepared, budget)
        share = prepared.mean_rate
        flagged = (1.0 - share) * prepared.scores.first_rejection > share * prepared.scores.accepted
        return rule(window_plan(prepared.most, flagged), budget, flagged=np.flatnonzero(flagged).tolist())
