"""The base class of the methods for `draft-stopping`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.draft_stopping.problem import DraftStoppingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.prepare import Flags, Prepared, prepare, window_plan
from specopt.solvers.method import Method, Outcome


@dataclass(frozen=True)
class DraftStoppingMethod(Method):
    """Base class of the methods for `draft-stopping`."""

    solves = DraftStoppingProblem

    def run(self, problem: DraftStoppingProblem, budget: Budget) -> Outcome:
        """Record the best fixed window and an upper bound in the budget, and then search.

        The bound is the best rate of a device that observes the class of the round and every
        rejection.
        """
        prepared = prepare(problem)
        never = prepared.none_flagged
        budget.offer(window_plan(0, never))
        budget.check()
        budget.offer(window_plan(best_window(prepared, never)[0], never))
        budget.improve_bound(prepared.knowing_bound())
        budget.check()
        return self.search(prepared, budget)

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Search for a better plan, starting from the plan and the bound recorded in the budget."""
        raise NotImplementedError


def best_window(prepared: Prepared, flagged: Flags) -> tuple[int, float]:
    """Return the best window of a rule that stops at flagged scores, and the rate of the rule.

    The rate is in tokens per duration of a round without drafts.
    """
    ratios = prepared.ratio(*prepared.windows(flagged))
    window = int(np.argmax(ratios))
    return window, float(ratios[window])
