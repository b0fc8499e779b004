"""Baselines for `verification-batch` problems, which add requests in a fixed order to the batch.

They stop at the first request that does not fit, unless their options let them skip it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from specopt.models.verification_batch.problem import VerificationBatchProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.verification_batch.method import VerificationBatchMethod, certify
from specopt.solvers.verification_batch.prepare import Prepared


@dataclass(frozen=True)
class InOrder(VerificationBatchMethod):
    """Base class of the baselines that first drop hopeless requests and then add requests in order.

    A hopeless request is one that no feasible batch contains.

    Parameters
    ----------
    skip
        Whether to continue after a request that does not fit.
    """

    skip: bool = False

    guarantee = "none; a certified gap"
    complexity = "O(n log n), with bound O(n^2)"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Add requests to the batch in the baseline's order."""
        able = prepared.without_hopeless(self.order(prepared.problem))
        return certify(prepared, prepared.in_order(able, self.skip), budget)

    @abstractmethod
    def order(self, problem: VerificationBatchProblem) -> Iterable[int]:
        """Return all requests in the order in which they are added."""


@dataclass(frozen=True)
class FirstComeFirstServed(InOrder):
    """Add requests in order of arrival until a request does not fit.

    Hopeless requests are dropped first.
    """

    name = "fcfs"
    source = "the batching of SLED, a baseline of paper 2"
    complexity = "O(n), with bound O(n^2)"

    def order(self, problem: VerificationBatchProblem) -> Iterable[int]:
        """Return the requests in order of their indices."""
        return range(problem.requests)


@dataclass(frozen=True)
class EarliestDeadlineFirst(InOrder):
    """Add requests in order of deadline until a request does not fit.

    Hopeless requests are dropped first.
    """

    name = "edf"
    source = "a standard rule of real-time scheduling"

    def order(self, problem: VerificationBatchProblem) -> Iterable[int]:
        """Return the requests in order of deadline. Ties are broken by index."""
        return map(int, np.argsort(problem.deadline_seconds, kind="stable"))


@dataclass(frozen=True)
class Algorithm1(VerificationBatchMethod):
    """Run Algorithm 1 of paper 2 as printed.

    The algorithm stops at the first request that does not fit, so one late request can block it
    forever. A request is critical if now >= d_i - v_i - delta (Eq. 17), with the problem's guard
    delta.

    Parameters
    ----------
    cost
        Definition of v_i, which the paper leaves open. "marginal" is the time w_i that a request
        adds to its batch. "alone" is the time c + w_i of a batch that contains only the request.
    """

    cost: Literal["marginal", "alone"] = "marginal"

    name = "algorithm-1"
    source = "paper 2, Algorithm 1; ties by index"
    guarantee = "none: its batch can be empty while others are feasible; a certified gap"
    complexity = "O(n log n), with bound O(n^2)"
    drops_hopeless: ClassVar[bool] = False

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Return the batch that the algorithm chooses, without improving it."""
        problem = prepared.problem
        own = problem.estimator.overhead_seconds if self.cost == "alone" else 0.0
        seconds, values = (prepared.seconds + own).tolist(), problem.expected_tokens.tolist()
        due = (problem.deadline_seconds - problem.now_seconds).tolist()

        utility = [
            v / s if s > 0 else math.inf for v, s in zip(values, seconds, strict=True)
        ]  # line 8
        critical, others = list[int](), list[int]()
        queue = range(problem.requests)
        for i in prepared.without_hopeless(queue) if self.drops_hopeless else queue:  # line 9, 11
            (critical if due[i] - seconds[i] - problem.guard_seconds <= 0.0 else others).append(i)
        critical.sort(key=lambda i: (due[i], i))  # line 13
        others.sort(key=lambda i: (-utility[i], i))  # line 14
        # lines 17-33: a violation among the critical requests also stops the other requests
        batch = prepared.in_order(critical + others, skip=False)
        return certify(prepared, batch, budget, critical=len(critical))


@dataclass(frozen=True)
class Algorithm1Drop(Algorithm1):
    """Run Algorithm 1 after dropping requests that are already late or do not fit in memory.

    As a result, the first request in the algorithm's order fits alone, so the batch is empty only
    if nothing fits. The distance to the optimum remains unbounded.
    """

    name = "algorithm-1-drop"
    source = "paper 2, Algorithm 1, after dropping hopeless requests (specopt); ties by index"
    guarantee = "none; a certified gap"
    drops_hopeless = True


BASELINES = (
    Algorithm1,
    Algorithm1Drop,
    FirstComeFirstServed,
    EarliestDeadlineFirst,
)
