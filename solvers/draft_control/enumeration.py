"""By enumeration: the best action of every state by itself, the best one for all states, the best of all policies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from specopt.models.draft_control import DraftControlProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, actions, certify, shares_of
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


@dataclass(frozen=True)
class BruteForceControl(DraftControlMethod):
    """All policies, by one array of E[N] and one of E[T]; a transient state takes its best action at the rate found.

    Nothing is assumed, so it is the oracle of the other methods.
    """

    name: ClassVar[str] = "brute-force"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "enumeration of Eq. 12, paper 3"
    guarantee: ClassVar[str] = "optimal"
    complexity: ClassVar[str] = "O(A^S) in time and memory"
    max_size: ClassVar[int] = 1_000_000
    size_unit: ClassVar[str] = "policies"

    def size_of(self, problem: DraftControlProblem) -> float:
        """Return the number of policies over the recurrent states."""
        policies = actions(problem) ** len(problem.recurrent_states)
        return policies if policies <= self.max_size else math.inf

    def search(self, prepared: Prepared, kernels: Any, budget: Budget) -> Outcome:
        """Enumerate."""
        tokens, seconds, lengths, indices = prepared.all_actions()
        inside = prepared.recurrent
        shares = shares_of(kernels, prepared)
        all_tokens, all_seconds = np.zeros(1), np.zeros(1)
        for state in inside.tolist():
            all_tokens = np.add.outer(all_tokens, shares[state] * tokens[state]).ravel()
            all_seconds = np.add.outer(all_seconds, shares[state] * seconds[state]).ravel()
        rates = all_tokens / all_seconds
        best = int(np.argmax(rates))
        price = float(rates[best])
        choice = np.argmax(tokens - price * seconds, axis=1)
        choice[inside] = np.unravel_index(best, (prepared.actions,) * len(inside))
        plan = prepared.plan(lengths[choice], indices[choice])
        budget.offer(plan)
        return Outcome(plan=plan, bound=price, stats={"price": price, "policies": len(rates)})
