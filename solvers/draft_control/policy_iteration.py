"""Policy iteration for the semi-Markov decision process of draft control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.draft_control import DraftControlProblem
from specopt.models.fields import Floats
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import (
    MAX_ROUNDS,
    DraftControlMethod,
    certify,
    offer_first_plan,
    rounding,
    weigh,
)
from specopt.solvers.draft_control.prepare import prepare
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class PolicyIteration(DraftControlMethod):
    """Evaluate a policy's rate; take the action of largest value at it in every state; repeat.

    The rate never falls, and where no action is better the policy solves the optimality equation, in transient
    states too. Relative values do not depend on the action: N - rate T decides in the improvement.
    """

    name: ClassVar[str] = "policy-iteration"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "own; Eq. 12 of paper 3 as a semi-Markov decision process (Howard 1960, Jewell 1963)"
    guarantee: ClassVar[str] = "optimal"
    complexity: ClassVar[str] = "O(S^3) once and O(S^2 + S A) per iteration, usually 3 to 6 iterations"

    def run(self, problem: DraftControlProblem, budget: Budget) -> Outcome:
        """Iterate until no state has a better action."""
        prepared = prepare(problem)
        offer_first_plan(prepared, budget)
        kernels = budget.load("draft_control")
        reduced = prepared.recurrent_chain
        kernels.stationary(reduced)
        lengths = np.full(prepared.states, prepared.shortest)
        indices = np.zeros(prepared.states, dtype=np.int64)
        best = np.empty(prepared.states)
        iterations = 0
        while True:
            iterations += 1
            tokens, seconds = weigh(kernels, prepared, lengths, indices)
            rate = cycle_rate(reduced, tokens[prepared.recurrent], seconds[prepared.recurrent])
            slack = rounding(tokens, seconds, rate)
            changed = kernels.improve(prepared.for_kernels, rate, slack, lengths, indices, best)
            if not changed or iterations == MAX_ROUNDS:
                return certify(kernels, prepared, lengths, indices, budget, rate, iterations=iterations)
            budget.offer(prepared.plan(lengths, indices))
            budget.check()


def cycle_rate(reduced: Floats, tokens: Floats, seconds: Floats) -> float:
    """Return tokens over seconds of a cycle, from the first state back to it: the rate of a policy.

    Each state, from the last to the second, hands what its iterations yield and take to the earlier states, in
    proportion to how often it is visited after each. Nothing is subtracted, so no digits are lost in chains that
    hardly mix. O(S^2).

    Parameters
    ----------
    reduced
        What the kernel `stationary` leaves of the chain: above the diagonal, the mean visits to the later state
        (column) that follow one to the earlier state (row), until a state before the later one is visited.
    tokens, seconds
        Of an iteration of each state, shape (S,).
    """
    yields = np.stack((tokens, seconds))
    for last in range(len(reduced) - 1, 0, -1):
        yields[:, :last] += reduced[:last, last] * yields[:, last, None]
    return float(yields[0, 0] / yields[1, 0])
