"""Baselines for `draft-control`, which choose actions by one rule in every state."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Ints
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, certify, first_actions
from specopt.solvers.draft_control.prepare import Prepared
from specopt.solvers.method import Condition, Outcome


@dataclass(frozen=True)
class Baseline(DraftControlMethod):
    """Base of the baselines, which report the best bound."""

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Take the actions of the rule."""
        return certify(prepared, self.actions(prepared), budget)

    @abstractmethod
    def actions(self, prepared: Prepared) -> Ints:
        """Return the action of every state, shape (S,)."""


@dataclass(frozen=True)
class Myopic(Baseline):
    """Choose the action with the largest N / T in every state (Eq. 13), the target of the paper's
    learned policy.

    Not optimal if states differ: iterations on a slow link should be shorter, so that more time
    remains for fast links.
    """

    name = "myopic"
    source = "paper 3, Eq. 13"
    guarantee = "none; optimal for one state"
    complexity = "O(S A), and O(S^3) for its bound"

    def actions(self, prepared: Prepared) -> Ints:
        """Maximise state by state."""
        tokens, seconds = prepared.tables
        best: Ints = np.argmax(tokens / seconds, axis=1)
        return best


@dataclass(frozen=True)
class BestStatic(Baseline):
    """Choose the best single action for all states: the static scheme of paper 3, tuned to the
    chain.
    """

    name = "best-static"
    source = "paper 3, Sec. V (static Q-S), by enumeration"
    guarantee = "best among the policies that do not look at the state"
    complexity = "O(S A), and O(S^3) for the stationary distribution and its bound"

    def actions(self, prepared: Prepared) -> Ints:
        """Enumerate the actions under the stationary distribution."""
        tokens, seconds = prepared.tables
        best = np.argmax((prepared.shares @ tokens) / (prepared.shares @ seconds))
        return np.full(prepared.states, best)


@dataclass(frozen=True)
class NoDrafts(Baseline):
    """Draft nothing in any state, as a lower reference for the other policies."""

    name = "no-drafts"
    source = "the large model alone"
    guarantee = "none"
    complexity = "O(S), and O(S^3) for its bound"
    takes = (
        Condition(
            "drafts of 0 tokens",
            lambda method, problem: (
                f"drafts from {low} on" if (low := problem.draft_lengths[0]) else None
            ),
        ),
    )

    def actions(self, prepared: Prepared) -> Ints:
        """Take the first action everywhere."""
        return first_actions(prepared)


BASELINES = (
    Myopic,
    BestStatic,
    NoDrafts,
)
