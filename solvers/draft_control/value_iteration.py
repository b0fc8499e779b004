"""Value iteration for the semi-Markov decision process of draft control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

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

STEP = 0.5
"""Share of a sweep's change that is applied; any below 1 makes a periodic chain converge."""

MAX_SWEEPS = 10_000_000
"""Per price; a chain that mixes more slowly ends with the bound that its relative values prove."""

REFINEMENTS = 1
"""Rounds that change the price alone after the policy is found."""

WORK_PER_CHECK = 20_000_000
"""Products between two looks at the clock."""


@dataclass(frozen=True)
class ValueIteration(DraftControlMethod):
    """Dinkelbach's price outside, relative value iteration inside.

    At a price, the best N - price T is the reward of each state; sweeps of h + 1/2 (reward + P h - h) close in on
    the gain from both sides. Then the gain of the seconds alone, in the same way, gives the policy's rate: the next
    price. No linear system is solved, and the stationary distribution is used for the bound only.
    """

    name: ClassVar[str] = "value-iteration"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "own; Eq. 12 of paper 3 (Dinkelbach 1967, White 1963, the transform of Schweitzer 1971)"
    guarantee: ClassVar[str] = "optimal; of a chain that mixes in more than about 10^6 steps, feasible with a bound"
    complexity: ClassVar[str] = "O(S^2) per sweep, as many sweeps as the chain takes to mix, times 30; O(S A) per price"

    def run(self, problem: DraftControlProblem, budget: Budget) -> Outcome:
        """Raise the price until no state has a better action."""
        prepared = prepare(problem)
        offer_first_plan(prepared, budget)
        kernels = budget.load("draft_control")
        lengths = np.full(prepared.states, prepared.shortest)
        indices = np.zeros(prepared.states, dtype=np.int64)
        inside = prepared.recurrent  # what a transient state does is never weighed by the gain
        chain = prepared.recurrent_chain
        best, values, seconds_values = np.empty(prepared.states), np.zeros(len(inside)), np.zeros(len(inside))
        price, rounds, sweeps, refined = 0.0, 0, 0, 0
        tokens, seconds = weigh(kernels, prepared, lengths, indices)
        while True:
            rounds += 1
            gain, more = _gain(kernels, chain, (tokens - price * seconds)[inside], values, budget)
            duration, also = _gain(kernels, chain, seconds[inside], seconds_values, budget)
            sweeps += more + also
            price += gain / duration  # the nearer the gain is to 0, the fewer digits of it rounding takes
            slack = rounding(tokens, seconds, price)
            changed = kernels.improve(prepared.for_kernels, price, slack, lengths, indices, best)
            refined = 0 if changed else refined + 1
            if refined > REFINEMENTS or rounds == MAX_ROUNDS:
                break
            budget.offer(prepared.plan(lengths, indices))
            tokens, seconds = weigh(kernels, prepared, lengths, indices)
        return certify(kernels, prepared, lengths, indices, budget, rounds=rounds, sweeps=sweeps)


def _gain(kernels: Any, chain: Floats, rewards: Floats, values: Floats, budget: Budget) -> tuple[float, int]:
    """Return the long-run reward per step and the sweeps that it took; the relative values are changed in place."""
    most = max(1, WORK_PER_CHECK // len(chain) ** 2)
    sweeps = 0
    while True:
        budget.check()
        low, high, made = kernels.sweep(chain, rewards, STEP, most, values)
        sweeps += made
        if made < most or sweeps >= MAX_SWEEPS:
            return (low + high) / 2.0, sweeps
