"""The base of the methods for `draft-stopping`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.draft_stopping import DraftStoppingPlan, DraftStoppingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.prepare import Prepared, window_plan
from specopt.solvers.method import Method, Outcome


@dataclass(frozen=True)
class DraftStoppingMethod(Method):
    """Base of the methods for `draft-stopping`."""

    solves: ClassVar[type[DraftStoppingProblem]] = DraftStoppingProblem


def offer_first_plan(prepared: Prepared, budget: Budget) -> int:
    """Offer the best fixed window, and the bound of a device that sees rejections; return the window."""
    never = np.zeros(prepared.scores.bins, dtype=np.bool_)
    budget.offer(window_plan(0, never))
    budget.check()
    window = int(np.argmax(prepared.ratio(*prepared.windows(never))))
    budget.offer(window_plan(window, never))
    budget.improve_bound(prepared.knowing_bound())
    budget.check()
    return window


def rule(plan: DraftStoppingPlan, budget: Budget, **stats: object) -> Outcome:
    """Return the outcome of a rule: its own plan, though another may be better, and the bound at hand."""
    budget.offer(plan)
    return Outcome(plan=plan, bound=budget.bound, stats=dict(stats))
