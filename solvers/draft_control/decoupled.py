"""The method `decoupled` for `draft-control`, which searches for the optimal price of a second. The
iterations are those of `policy-iteration`.
"""

from __future__ import annotations

from dataclasses import dataclass

from specopt.solvers.draft_control.policy_iteration import PolicyIteration


@dataclass(frozen=True)
class Decoupled(PolicyIteration):
    """Maximise N - price T in each state separately.

    N is the expected number of tokens of an iteration, and T is its duration. The price of a second
    is the rate of the previous policy.

    The method is exact because actions do not affect the chain, so E[N] - price E[T] is a sum over
    states. The optimal rate is the largest price at which some policy still makes this difference 0
    (Dinkelbach 1967).
    """

    name = "decoupled"
    source = "own; Eq. 12 of paper 3, one price for all states"
    complexity = "O(S^3) once and O(S A) per round, usually 3 to 6 rounds"
