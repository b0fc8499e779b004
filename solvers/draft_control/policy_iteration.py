"""Policies that are better at the rate of the one before, until none is: both methods are exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.fields import Floats
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, best_price, certify
from specopt.solvers.draft_control.prepare import Prepared
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class PolicyIteration(DraftControlMethod):
    """Evaluate a policy's rate; take the action of largest value at it in every state; repeat.

    The rate never falls, and where no action is better the policy solves the optimality equation,
    in transient states too. Relative values do not depend on the action: N - rate T decides in the
    improvement.
    """

    name = "policy-iteration"
    exact = True
    source = "own; Eq. 12 of paper 3 as a semi-Markov decision process (Howard 1960, Jewell 1963)"
    guarantee = "optimal"
    complexity = "O(S^3) once and O(S^2 + S A) per iteration, usually 3 to 6 iterations"

    def search(self, prepared: Prepared, kernels: Any, budget: Budget) -> Outcome:
        """Iterate until no state has a better action."""
        reduced, inside = prepared.recurrent_chain, prepared.recurrent
        kernels.stationary(reduced)

        def rate(tokens: Floats, seconds: Floats) -> float:
            return cycle_rate(reduced, tokens[inside], seconds[inside])

        lengths, indices, price, iterations = best_price(
            kernels, prepared, rate, budget, offers=True
        )
        return certify(kernels, prepared, lengths, indices, budget, price, iterations=iterations)


def cycle_rate(reduced: Floats, tokens: Floats, seconds: Floats) -> float:
    """Return tokens over seconds of a cycle, from the first state back to it: the rate of a policy.

    Each state, from the last to the second, hands what its iterations yield and take to the earlier
    states, in proportion to how often it is visited after each. Nothing is subtracted, so no digits
    are lost in chains that hardly mix. O(S^2).

    Parameters
    ----------
    reduced
        What the kernel `stationary` leaves of the chain. Above the diagonal: the mean visits to the
        later state (column) that follow one to the earlier state (row), until a state before the
        later one is visited.
    tokens, seconds
        Of an iteration of each state, shape (S,).
    """
    yields = np.stack((tokens, seconds))
    for last in range(len(reduced) - 1, 0, -1):
        yields[:, :last] += reduced[:last, last] * yields[:, last, None]
    return float(yields[0, 0] / yields[1, 0])
