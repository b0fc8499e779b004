"""The best action that is the same in every state: the static scheme of paper 3, tuned to the chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, certify, shares_of
from specopt.solvers.draft_control.prepare import Prepared
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class BestStatic(DraftControlMethod):
    """The best action that is the same in every state: the static scheme of paper 3, tuned to the chain."""

    name = "best-static"
    source = "paper 3, Sec. V (static Q-S), by enumeration"
    guarantee = "best among the policies that do not look at the state"
    complexity = "O(S A), and O(S^3) for the stationary distribution and its bound"

    def search(self, prepared: Prepared, kernels: Any, budget: Budget) -> Outcome:
        """Enumerate the actions under the stationary distribution."""
        shares = shares_of(kernels, prepared)
        per_draft, bit = shares @ prepared.per_draft, shares @ prepared.per_count_bit
        powers = np.ones_like(prepared.rates)
        tokens = np.ones(len(prepared.resolutions))
        best, length, index = -np.inf, prepared.shortest, 0
        for drafts in range(prepared.longest + 1):
            if drafts:
                powers *= prepared.rates
                tokens += shares @ powers
            if drafts < prepared.shortest:
                continue
            fixed = shares @ (prepared.verify[drafts] + prepared.fixed)
            rates = tokens / (fixed + drafts * per_draft + drafts.bit_length() * bit)
            r = int(np.argmax(rates))
            if rates[r] > best:
                best, length, index = float(rates[r]), drafts, r
        everywhere = np.ones(prepared.states, np.int64)
        return certify(kernels, prepared, length * everywhere, index * everywhere, budget)
