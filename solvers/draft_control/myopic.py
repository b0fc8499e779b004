"""The action of largest N / T in every state (Eq. 13), which is what the paper's learned policy aims at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, certify
from specopt.solvers.draft_control.prepare import Prepared
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class Myopic(DraftControlMethod):
    """The action of largest N / T in every state (Eq. 13), which is what the paper's learned policy aims at.

    Not optimal where states differ: an iteration on a slow link should be cut short for the sake of the fast ones.
    """

    name = "myopic"
    source = "paper 3, Eq. 13"
    guarantee = "none; optimal for one state"
    complexity = "O(S A), and O(S^3) for its bound"

    def search(self, prepared: Prepared, kernels: Any, budget: Budget) -> Outcome:
        """Maximise state by state."""
        lengths, indices = np.empty(prepared.states, np.int64), np.empty(prepared.states, np.int64)
        kernels.most_at_once(prepared.for_kernels, lengths, indices)
        return certify(kernels, prepared, lengths, indices, budget)
