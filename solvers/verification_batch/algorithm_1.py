"""Algorithm 1 of paper 2: critical requests by deadline first, then the others by value per second."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from specopt.models.verification_batch import VerificationBatchProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.verification_batch.method import VerificationBatchMethod, certify, offer_first_plan
from specopt.solvers.verification_batch.prepare import Prepared


@dataclass(frozen=True)
class Algorithm1(VerificationBatchMethod):
    """As printed: it stops at the first request that does not fit, so one late request can stop it for ever.

    A request is critical if now >= d_i - v_i - delta (Eq. 17), with the problem's guard delta.

    Parameters
    ----------
    cost
        v_i, which the paper leaves open: "marginal" is what a request adds to its batch, w_i; "alone" is its time
        in a batch of its own, c + w_i.
    """

    cost: Literal["marginal", "alone"] = "marginal"

    name: ClassVar[str] = "algorithm-1"
    source: ClassVar[str] = "paper 2, Algorithm 1; ties by index"
    guarantee: ClassVar[str] = "none: its batch can be empty while others are feasible; a certified gap"
    complexity: ClassVar[str] = "O(n log n), with bound O(n^2)"

    def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
        """Build the batch of the algorithm, and nothing better."""
        prepared = Prepared(problem)
        offer_first_plan(prepared, budget)
        batch, critical = algorithm_1(prepared, range(problem.requests), self.cost)
        return certify(prepared, batch, budget, critical=critical)


def algorithm_1(
    prepared: Prepared, queue: range | list[int], cost: Literal["marginal", "alone"]
) -> tuple[list[int], int]:
    """Return the batch of Algorithm 1, and how many requests of the queue are critical."""
    problem = prepared.problem
    own = problem.estimator.overhead_seconds if cost == "alone" else 0.0
    seconds, values = (prepared.seconds + own).tolist(), problem.expected_tokens.tolist()
    due = (problem.deadline_seconds - problem.now_seconds).tolist()

    utility = [v / s if s > 0 else math.inf for v, s in zip(values, seconds, strict=True)]  # line 8
    is_critical = [due[i] - seconds[i] - problem.guard_seconds <= 0.0 for i in range(problem.requests)]  # line 9, 11
    critical = sorted((i for i in queue if is_critical[i]), key=lambda i: (due[i], i))  # line 13
    others = sorted((i for i in queue if not is_critical[i]), key=lambda i: (-utility[i], i))  # line 14
    # lines 17-33: a violation among the critical ones stops the others, too
    return prepared.in_order(critical + others, skip=False), len(critical)
