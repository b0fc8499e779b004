"""The method `brute-force` for `draft-control`, which enumerates all policies."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from specopt.models.draft_control.problem import DraftControlProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, actions
from specopt.solvers.draft_control.prepare import Prepared
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class BruteForceControl(DraftControlMethod):
    """Enumerate all policies over the recurrent states.

    E[N] and E[T] of every policy are kept in memory. Transient states use the action that is best
    at the optimal rate. Because enumeration makes no assumptions, the other methods are tested
    against it.
    """

    name = "brute-force"
    exact = True
    source = "enumeration of Eq. 12, paper 3"
    guarantee = "optimal"
    complexity = "O(A^S) in time and memory"
    max_size = 1_000_000
    size_unit = "policies"
    bytes_per_part = 40.0

    def size_of(self, problem: DraftControlProblem) -> float:
        """Return the number of policies over the recurrent states, or infinity above the limit."""
        policies = actions(problem) ** len(problem.recurrent_states)
        return policies if policies <= self.max_size else math.inf

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Enumerate the policies and return the one with the highest rate."""
        tokens, seconds = prepared.tables
        inside, shares = prepared.recurrent, prepared.shares
        all_tokens, all_seconds = np.zeros(1), np.zeros(1)
        for state in inside.tolist():
            all_tokens = np.add.outer(all_tokens, shares[state] * tokens[state]).ravel()
            all_seconds = np.add.outer(all_seconds, shares[state] * seconds[state]).ravel()
        rates = all_tokens / all_seconds
        best = int(np.argmax(rates))
        price = float(rates[best])
        choice = np.argmax(tokens - price * seconds, axis=1)
        choice[inside] = np.unravel_index(best, (prepared.actions,) * len(inside))
        plan = prepared.plan(choice)
        budget.offer(plan)
        return Outcome(plan=plan, bound=price, stats={"price": price, "policies": len(rates)})
