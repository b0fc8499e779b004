"""What rules that stop at flagged scores share."""

from __future__ import annotations

import numpy as np

from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.method import rule
from specopt.solvers.draft_stopping.prepare import Flags, window_plan
from specopt.solvers.method import Outcome


def flagging(most: int, flagged: Flags, budget: Budget, **stats: object) -> Outcome:
    """Return the outcome of stopping at flagged scores and at a window."""
    return rule(window_plan(most, flagged), budget, **stats, flagged=np.flatnonzero(flagged).tolist())
