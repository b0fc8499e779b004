"""The static problem by enumeration: every draft length at every resolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.draft_control import DraftControlProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, start
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class EnumerationControl(DraftControlMethod):
    """All actions of the one state."""

    name: ClassVar[str] = "enumeration"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "enumeration of Eq. 12, paper 3, one state"
    guarantee: ClassVar[str] = "optimal"
    complexity: ClassVar[str] = "O(A), the number of resolutions times draft lengths"
    one_state: ClassVar[bool] = True
    max_size: ClassVar[int] = 20_000_000

    def run(self, problem: DraftControlProblem, budget: Budget) -> Outcome:
        """Enumerate."""
        tables = start(problem, budget)
        tokens, seconds, lengths, indices = tables.all_actions()
        best = int(np.argmax(tokens[0] / seconds[0]))
        price = float(tokens[0, best] / seconds[0, best])
        violation = float((tokens[0] - price * seconds[0]).max())
        plan = tables.plan(lengths[best : best + 1], indices[best : best + 1])
        budget.offer(plan)
        bound = price + max(violation, 0.0) / float(tables.quickest[0])
        stats = {"price": price, "largest_violation": violation, "actions": tables.actions}
        return Outcome(plan=plan, bound=bound, stats=stats)
