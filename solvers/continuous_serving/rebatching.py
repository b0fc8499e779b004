"""Plans by a scheduler that is played ahead of time, at every speculation length, and at each
step's best.

See `specopt.solvers.continuous_serving.scheduler` for the scheduler. Bandwidth: the optimal shares
of a common start (Eq. 27); of tasks that arrive one by one, those shares of all that may upload at
one time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.continuous_serving.problem import (
    ContinuousServingPlan,
    ContinuousServingProblem,
)
from specopt.models.fields import Floats
from specopt.solvers.budget import Budget
from specopt.solvers.continuous_serving.bound import served_bound
from specopt.solvers.continuous_serving.method import (
    ContinuousServingMethod,
    offer_first_plan,
    prepare_all,
)
from specopt.solvers.continuous_serving.prepare import Prepared
from specopt.solvers.continuous_serving.scheduler import FEW, MAX_LENGTHS, Former, PhaseBuilder
from specopt.solvers.method import Outcome
from specopt.solvers.serving_method import offer_if_feasible, planned_outputs


@dataclass(frozen=True)
class Rebatching(ContinuousServingMethod):
    """Batches formed anew wherever a task finishes or joins; the best of all speculation
    lengths.
    """

    name = "rebatching"
    source = "own; shortest paths and Johnson's rule at every event"
    guarantee = "a lower bound; the gap is certified, not closed"
    complexity = "O(l_max E K B), E events, B tasks in the largest batch"

    def run(self, problem: ContinuousServingProblem, budget: Budget) -> Outcome:
        """Play the scheduler under every mechanism."""
        able = prepare_all(problem)
        for prepared in able:
            offer_first_plan(prepared, budget)
        for prepared in able:
            former = Former(prepared, budget)
            shares = arrival_shares(prepared)
            for outputs in planned_outputs(problem, (1.0, 0.5)):
                self._play(PhaseBuilder(former, outputs, shares), budget)
        return Outcome(
            plan=budget.incumbent, bound=min(served_bound(prepared, budget) for prepared in able)
        )

    def _play(self, builder: PhaseBuilder, budget: Budget) -> None:
        """Offer the plans of fixed speculation lengths, and of the one that chooses at every event;
        of many tasks the one that seems to be the fastest.
        """
        lengths = builder.prepared.lengths
        found: list[tuple[float, ContinuousServingPlan]] = []
        for length in lengths:
            found.append(builder.plan(range(length, length + 1), budget))
            if len(found) > 2 and found[-1][0] > found[-2][0] > found[-3][0]:
                break
        few = builder.problem.tasks <= FEW
        if len(lengths) > 1:
            found.append(builder.plan(lengths[: MAX_LENGTHS if few else len(found)], budget))
        for _, plan in sorted(found, key=lambda one: one[0]):
            if offer_if_feasible(builder.problem, plan, budget) and not few:
                break


def arrival_shares(prepared: Prepared) -> Floats:
    """Return the optimal shares (Eq. 27); of tasks that arrive apart, as many times these as never
    exceeds the band.
    """
    problem = prepared.problem
    if problem.arrival_seconds is None:
        return prepared.shares
    low, high = 1.0, float(1.0 / prepared.shares.min())
    for _ in range(40):
        middle = float(np.sqrt(low * high))
        shares = np.minimum(1.0, middle * prepared.shares)
        low, high = (
            (middle, high)
            if problem.most_at_once(prepared.mechanism, shares) <= 1.0
            else (low, middle)
        )
    return np.minimum(1.0, low * prepared.shares)
