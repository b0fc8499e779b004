"""Policy iteration for the semi-Markov decision process of draft control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.draft_control import DraftControlProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import (
    MOST_ROUNDS,
    DraftControlMethod,
    best_price,
    certify,
    offer_first_plan,
    relative_values,
    rounding,
    shares_of,
    weigh,
)
from specopt.solvers.draft_control.prepare import prepare
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class PolicyIteration(DraftControlMethod):
    """Evaluate a policy's rate and relative values; take the action of largest value in every state; repeat.

    The rate never falls, and where no action is better the policy solves the optimality equation, in transient
    states too. Relative values do not depend on the action: N - rate T decides in the improvement.
    """

    name: ClassVar[str] = "policy-iteration"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "own; Eq. 12 of paper 3 as a semi-Markov decision process (Howard 1960, Jewell 1963)"
    guarantee: ClassVar[str] = "optimal"
    complexity: ClassVar[str] = "O(S^3 + S A) per iteration, usually 3 to 6 iterations"

    def run(self, problem: DraftControlProblem, budget: Budget) -> Outcome:
        """Iterate until no state has a better action."""
        prepared = prepare(problem)
        offer_first_plan(prepared, budget)
        kernels = budget.load("draft_control")
        lengths = np.full(prepared.states, prepared.shortest)
        indices = np.zeros(prepared.states, dtype=np.int64)
        best = np.empty(prepared.states)
        iterations = 0
        while True:
            iterations += 1
            tokens, seconds = weigh(kernels, prepared, lengths, indices)
            rate, values = relative_values(prepared, tokens, seconds)
            slack = rounding(tokens, seconds, rate)
            changed = kernels.improve(prepared.for_kernels, rate, slack, lengths, indices, best)
            if not changed or iterations == MOST_ROUNDS:
                break
            budget.offer(prepared.plan(lengths, indices))
            budget.check()
        # where the chain hardly mixes the linear system has lost digits, and the rate is put right here
        lengths, indices, rate, _ = best_price(
            kernels, prepared, shares_of(kernels, prepared), lengths, indices, budget
        )
        return certify(kernels, prepared, lengths, indices, budget, (rate, values), iterations=iterations)
