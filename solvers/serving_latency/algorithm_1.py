"""Algorithm 1 of paper 1, a dynamic program over contiguous batches for every speculation length.

Tasks are sorted by input length. Y[i, n, 0] and Y[i, n, 1] are the times at which the draft stage
and the verify stage finish the first i tasks at step n. The times refer to the partition of the
first i tasks with the smallest total latency (Eq. 29-32, with misprints corrected:
``max{Y[j-1,n,0] + T^d, Y[j-1,n,1]} + T^v``). The algorithm is a heuristic because it keeps one
partition per prefix. Batches run in ascending order of input length.

The completion times are stored as convex, piecewise linear functions of n instead of as one number
per step. The cost is O(K^2 P) per speculation length, where P is the number of linear pieces
(typically a handful). The cost does not depend on the number of steps N.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.serving_latency.contiguous import algorithm_1_batches
from specopt.solvers.serving_latency.method import (
    PIPELINED,
    ServingLatencyMethod,
    begun,
    certify,
)
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_method import quick_batches

TIE = 1e-12


@dataclass(frozen=True)
class Algorithm1(ServingLatencyMethod):
    """The paper's dynamic program, run for each speculation length and combined with optimal
    bandwidth shares.
    """

    name = "algorithm-1"
    source = "paper 1, Algorithm 1, Eq. 27-33"
    guarantee = "none; measured 1-3 % above the optimum at the paper's setting"
    complexity = "O(l_max K^2), whatever the number of decoding steps"
    takes = (PIPELINED,)

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Run the dynamic program for every speculation length, and return the best plan. Known
        output lengths are replaced by the maximum output length O_max.
        """
        (prepared,) = begun(problem, budget)
        return certify(prepared, self.plan(prepared, budget), budget)

    def plan(self, prepared: Prepared, budget: Budget) -> ServingLatencyPlan:
        """Return the best plan that Algorithm 1 finds over all speculation lengths."""
        return best_plan(prepared, budget)


def best_plan(
    prepared: Prepared, budget: Budget, shares: Floats | None = None, lengths: Sequence[int] = ()
) -> ServingLatencyPlan:
    """Return Algorithm 1's plan at the best of the speculation lengths in `lengths`.

    By default, all speculation lengths are tried, and the bandwidth shares are optimal.
    """
    lengths = lengths or prepared.lengths
    best, plan = np.inf, None
    for length in lengths:
        batches, seconds = algorithm_1_batches(prepared, length, budget)
        if batches is not None and (plan is None or seconds < best * (1 - TIE)):
            best, plan = seconds, prepared.plan(batches, length, shares)
            budget.offer(plan)
    if plan is None:  # with known lengths, the assumed O_max may exceed the memory
        quick = quick_batches(prepared)
        assert quick is not None, "every task fits alone"
        plan = prepared.plan(quick, lengths[0], shares)
        budget.offer(plan)
    return plan
