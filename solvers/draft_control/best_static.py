"""One draft length and one resolution for all states: what adapting to the channel is worth is measured against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.draft_control import DraftControlProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, compared, shares_of, start
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class BestStatic(DraftControlMethod):
    """The best action that is the same in every state: the static scheme of paper 3, tuned to the chain."""

    name: ClassVar[str] = "best-static"
    source: ClassVar[str] = "paper 3, Sec. V (static Q-S), by enumeration"
    guarantee: ClassVar[str] = "best among the policies that do not look at the state"
    complexity: ClassVar[str] = "O(S A), and O(S^3) for the stationary distribution and its bound"

    def run(self, problem: DraftControlProblem, budget: Budget) -> Outcome:
        """Enumerate the actions under the stationary distribution."""
        tables = start(problem, budget)
        kernels = budget.load("draft_control")
        shares = shares_of(kernels, tables)
        per_draft, fixed, bit = shares @ tables.per_draft, shares @ tables.fixed, shares @ tables.per_count_bit
        powers = np.ones_like(tables.rates)
        tokens = np.ones(len(tables.resolutions))
        best, length, index = -np.inf, tables.shortest, 0
        for drafts in range(tables.longest + 1):
            if drafts:
                powers *= tables.rates
                tokens += shares @ powers
            if drafts < tables.shortest:
                continue
            rates = tokens / (fixed + drafts * per_draft + drafts.bit_length() * bit)
            r = int(np.argmax(rates))
            if rates[r] > best:
                best, length, index = float(rates[r]), drafts, r
        everywhere = np.ones(tables.states, dtype=np.int64)
        return compared(kernels, tables, length * everywhere, index * everywhere, budget)
