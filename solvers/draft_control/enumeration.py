"""The static problem by enumeration: every draft length at every resolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.draft_control import DraftControlProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import ONE_STATE, DraftControlMethod, offer_first_plan
from specopt.solvers.draft_control.prepare import prepare
from specopt.solvers.method import Condition, Outcome


@dataclass(frozen=True)
class EnumerationControl(DraftControlMethod):
    """All actions of the one state."""

    name: ClassVar[str] = "enumeration"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "enumeration of Eq. 12, paper 3, one state"
    guarantee: ClassVar[str] = "optimal"
    complexity: ClassVar[str] = "O(A), the number of resolutions times draft lengths"
    takes: ClassVar[tuple[Condition, ...]] = (ONE_STATE,)
    max_size: ClassVar[int] = 20_000_000

    def run(self, problem: DraftControlProblem, budget: Budget) -> Outcome:
        """Enumerate."""
        prepared = prepare(problem)
        offer_first_plan(prepared, budget)
        tokens, seconds, lengths, indices = prepared.all_actions()
        best = int(np.argmax(tokens[0] / seconds[0]))
        price = float(tokens[0, best] / seconds[0, best])
        violation = float((tokens[0] - price * seconds[0]).max())
        plan = prepared.plan(lengths[best : best + 1], indices[best : best + 1])
        budget.offer(plan)
        bound = price + max(violation, 0.0) / float(prepared.quickest[0])
        stats = {"price": price, "mean_violation": violation, "actions": prepared.actions}
        return Outcome(plan=plan, bound=bound, stats=stats)
