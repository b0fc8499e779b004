"""Baselines for `draft-control`, which choose the action in every state by a simple rule."""

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
    """Base class of the baselines.

    Each baseline also reports an upper bound on the rate of any policy, which equals the optimal
    rate up to rounding.
    """

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Apply the baseline's rule in every state, and compute an upper bound."""
        return certify(prepared, self.actions(prepared), budget)

    @abstractmethod
    def actions(self, prepared: Prepared) -> Ints:
        """Return the action chosen in each state, with shape (S,)."""


@dataclass(frozen=True)
class Myopic(Baseline):
    """Choose the action with the largest N / T in every state (Eq. 13).

    N is the expected number of tokens of an iteration, and T is its duration. Paper 3 trains its
    policy with this ratio as the reward. The rule is not optimal if states differ: iterations on a
    slow link should be shorter, so that more time remains for fast links.
    """

    name = "myopic"
    source = "paper 3, Eq. 13"
    guarantee = "none; optimal for one state"
    complexity = "O(S A), and O(S^3) for its bound"

    def actions(self, prepared: Prepared) -> Ints:
        """Return the action that maximises N / T in each state."""
        tokens, seconds = prepared.tables
        best: Ints = np.argmax(tokens / seconds, axis=1)
        return best


@dataclass(frozen=True)
class BestStatic(Baseline):
    """Use the best single action in all states.

    This is the static scheme of paper 3, with the action chosen for the problem's Markov chain.
    """

    name = "best-static"
    source = "paper 3, Sec. V (static Q-S), by enumeration"
    guarantee = "best among the policies that do not depend on the state"
    complexity = "O(S A), and O(S^3) for the stationary distribution and its bound"

    def actions(self, prepared: Prepared) -> Ints:
        """Return the action with the highest rate under the stationary distribution.

        The same action is used in every state.
        """
        tokens, seconds = prepared.tables
        best = np.argmax((prepared.shares @ tokens) / (prepared.shares @ seconds))
        return np.full(prepared.states, best)


@dataclass(frozen=True)
class NoDrafts(Baseline):
    """Draft nothing in any state, so that the large model generates every token."""

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
        """Return the first action, which drafts nothing, for every state."""
        return first_actions(prepared)


BASELINES = (
    Myopic,
    BestStatic,
    NoDrafts,
)
