"""Policy iteration for the semi-Markov decision process of draft control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from specopt.models.draft_control import DraftControlProblem
from specopt.models.errors import OutOfTime, Stopped
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import SLACK, DraftControlMethod, certified, relative_values, start, weigh
from specopt.solvers.draft_control.tables import Tables
from specopt.solvers.method import Outcome

MOST_ITERATIONS = 1000
"""More are never needed: the rate rises from step to step, about as fast as Newton's method."""


@dataclass(frozen=True)
class PolicyIteration(DraftControlMethod):
    """Evaluate a policy's rate and relative values; take the action of largest value in every state; repeat.

    The rate never falls, and where no action is better the policy solves the optimality equation, in transient
    states too.
    """

    name: ClassVar[str] = "policy-iteration"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "own; Eq. 12 of paper 3 as a semi-Markov decision process (Howard 1960, Jewell 1963)"
    guarantee: ClassVar[str] = "optimal"
    complexity: ClassVar[str] = "O(S^3 + S A) per iteration, usually 3 to 6 iterations"

    def run(self, problem: DraftControlProblem, budget: Budget) -> Outcome:
        """Iterate until no state has a better action."""
        tables = start(problem, budget)
        kernels = budget.load("draft_control")
        lengths, indices, rate, values, iterations = optimal_policy(kernels, tables, budget)
        return certified(kernels, tables, lengths, indices, rate, values, budget, iterations=iterations)


def optimal_policy(kernels: Any, tables: Tables, budget: Budget) -> tuple[Ints, Ints, float, Floats, int]:
    """Return lengths and resolution indices of an optimal policy, its rate, relative values, and the iterations.

    Raises
    ------
    OutOfTime, Stopped
        From the budget's checks; the policy at hand is offered before.
    """
    lengths = np.full(tables.states, tables.shortest)
    indices = np.zeros(tables.states, dtype=np.int64)
    best = np.empty(tables.states)
    rate, values, iterations = 0.0, best, 0
    try:
        while iterations < MOST_ITERATIONS:
            iterations += 1
            tokens, seconds = weigh(kernels, tables, lengths, indices)
            rate, values = relative_values(tables, tokens, seconds)
            budget.check()
            # the expected relative value of the next state is the same for all actions: only N - rate T is compared
            slack = SLACK * float(np.abs(tokens).max() + abs(rate) * seconds.max())
            low, high = tables.shortest, tables.longest
            if not kernels.improve(*tables.arrays, low, high, rate, slack, lengths, indices, best):
                break
    except (OutOfTime, Stopped, KeyboardInterrupt):
        budget.offer(tables.plan(lengths, indices))
        raise
    return lengths, indices, rate, values, iterations
