"""Baselines: the reward of paper 3, maximised iteration by iteration, and one action for all states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, certify, shares_of
from specopt.solvers.draft_control.prepare import Prepared
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class Myopic(DraftControlMethod):
    """The action of largest N / T in every state (Eq. 13), which is what the paper's learned policy aims at.

    Not optimal where states differ: an iteration on a slow link should be cut short for the sake of the fast ones.
    """

    name: ClassVar[str] = "myopic"
    source: ClassVar[str] = "paper 3, Eq. 13"
    guarantee: ClassVar[str] = "none; optimal for one state"
    complexity: ClassVar[str] = "O(S A), and O(S^3) for its bound"

    def search(self, prepared: Prepared, kernels: Any, budget: Budget) -> Outcome:
        """Maximise state by state."""
        lengths, indices = np.empty(prepared.states, dtype=np.int64), np.empty(prepared.states, dtype=np.int64)
        kernels.most_at_once(prepared.for_kernels, lengths, indices)
        return certify(kernels, prepared, lengths, indices, budget)


@dataclass(frozen=True)
class BestStatic(DraftControlMethod):
    """The best action that is the same in every state: the static scheme of paper 3, tuned to the chain."""

    name: ClassVar[str] = "best-static"
    source: ClassVar[str] = "paper 3, Sec. V (static Q-S), by enumeration"
    guarantee: ClassVar[str] = "best among the policies that do not look at the state"
    complexity: ClassVar[str] = "O(S A), and O(S^3) for the stationary distribution and its bound"

    def search(self, prepared: Prepared, kernels: Any, budget: Budget) -> Outcome:
        """Enumerate the actions under the stationary distribution."""
        shares = shares_of(kernels, prepared)
        per_draft, fixed, bit = shares @ prepared.per_draft, shares @ prepared.fixed, shares @ prepared.per_count_bit
        powers = np.ones_like(prepared.rates)
        tokens = np.ones(len(prepared.resolutions))
        best, length, index = -np.inf, prepared.shortest, 0
        for drafts in range(prepared.longest + 1):
            if drafts:
                powers *= prepared.rates
                tokens += shares @ powers
            if drafts < prepared.shortest:
                continue
            rates = tokens / (fixed + drafts * per_draft + drafts.bit_length() * bit)
            r = int(np.argmax(rates))
            if rates[r] > best:
                best, length, index = float(rates[r]), drafts, r
        everywhere = np.ones(prepared.states, dtype=np.int64)
        return certify(kernels, prepared, length * everywhere, index * everywhere, budget)
