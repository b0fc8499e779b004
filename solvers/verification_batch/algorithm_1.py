"""Algorithm 1 of paper 2, as printed or without hopeless requests: critical ones by deadline, the others by density."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.verification_batch.method import VerificationBatchMethod, certify
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

    name = "algorithm-1"
    source = "paper 2, Algorithm 1; ties by index"
    guarantee = "none: its batch can be empty while others are feasible; a certified gap"
    complexity = "O(n log n), with bound O(n^2)"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Build the batch of the algorithm, and nothing better."""
        problem = prepared.problem
        own = problem.estimator.overhead_seconds if self.cost == "alone" else 0.0
        seconds, values = (prepared.seconds + own).tolist(), problem.expected_tokens.tolist()
        due = (problem.deadline_seconds - problem.now_seconds).tolist()

        utility = [v / s if s > 0 else math.inf for v, s in zip(values, seconds, strict=True)]  # line 8
        critical, others = list[int](), list[int]()
        for i in self.queue(prepared):  # line 9, 11
            (critical if due[i] - seconds[i] - problem.guard_seconds <= 0.0 else others).append(i)
        critical.sort(key=lambda i: (due[i], i))  # line 13
        others.sort(key=lambda i: (-utility[i], i))  # line 14
        # lines 17-33: a violation among the critical ones stops the others, too
        batch = prepared.in_order(critical + others, skip=False)
        return certify(prepared, batch, budget, critical=len(critical))

    def queue(self, prepared: Prepared) -> list[int]:
        """Return the requests that the algorithm sees."""
        return list(range(prepared.problem.requests))
