"""Verification batching: choose the requests that a verifier processes next (paper 2).

The problem is one dispatch epoch t_k of problem (13)-(15). The objective is to maximise the
expected number of verified tokens in the batch. The batch must fit in the memory M(t_k) and finish
by the deadlines of all its requests. If a request would miss its deadline even when verified alone,
that is, if c + w_i > d_i - now, no feasible batch contains the request.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Column,
    Floats,
    FloatsLike,
    Given,
    Ints,
    IntsLike,
    NonNegative,
    NonNegativeInt,
    required,
)
from specopt.models.pass_time import VerificationTime
from specopt.models.problem import Evaluation, Plan, Problem, exceeds

Amounts = Given[Annotated[Floats, Column(NonNegative, minimum_size=0)], FloatsLike]
Counts = Given[Annotated[Ints, Column(NonNegativeInt, minimum_size=0)], IntsLike]


@dataclass(frozen=True, kw_only=True, eq=False)
class VerificationBatchPlan(Plan):
    """A batch of requests that are verified together.

    Parameters
    ----------
    batch
        Indices of the requests. The batch may be empty.
    """

    batch: Counts = required()


@dataclass(frozen=True, kw_only=True, eq=False)
class VerificationBatchProblem(Problem[VerificationBatchPlan]):
    """Maximise the expected number of verified tokens in the next batch.

    The problem is one epoch of Eq. 13-15 in paper 2. Requests are listed in order of arrival. The
    list may be empty.

    Parameters
    ----------
    now_seconds
        Time t_k at which the batch starts, in seconds on any clock.
    memory_bytes
        Free memory M(t_k) of the verifier, in bytes.
    expected_tokens
        Expected number of tokens gained by verifying each request (Eq. 5).
    new_tokens
        Number L_new of tokens that the verifier must compute for each request.
    cached_tokens
        Number L_cached of tokens that the verifier must read from the KV cache for each request.
    request_memory_bytes
        Memory required by each request, in bytes.
    deadline_seconds
        Deadline of each request, in seconds on the same clock as `now_seconds`. A batch must finish
        by the deadlines of all its requests (Eq. 12).
    estimator
        Estimator for a batch's duration (Eq. 18-19).
    guard_seconds
        Guard time delta of Eq. 17, in seconds. Only Algorithm 1 uses it. Feasibility does not
        depend on it.

    Examples
    --------
    >>> from specopt import VerificationBatchProblem, VerificationTime, solve
    >>> problem = VerificationBatchProblem(
    ...     now_seconds=0.0,
    ...     memory_bytes=4e9,
    ...     expected_tokens=[3.1, 2.2, 4.0],
    ...     new_tokens=[5, 4, 6],
    ...     cached_tokens=[200, 900, 50],
    ...     request_memory_bytes=[1e9, 2e9, 1.5e9],
    ...     deadline_seconds=[0.05, 0.08, 0.2],
    ...     estimator=VerificationTime(
    ...         seconds_per_new_token=1e-4,
    ...         seconds_per_interaction=1e-8,
    ...         seconds_per_cached_token=1e-6,
    ...         overhead_seconds=0.02,
    ...     ),
    ... )
    >>> solve(problem).status.value
    'optimal'
    """

    kind = "verification-batch"
    plan_type = VerificationBatchPlan
    sense = "maximize"
    objective_label = "expected tokens of the batch"

    now_seconds: float
    memory_bytes: NonNegative
    expected_tokens: Amounts = required()
    new_tokens: Counts = required()
    cached_tokens: Counts = required()
    request_memory_bytes: Amounts = required()
    deadline_seconds: Given[Annotated[Floats, Column(float, minimum_size=0)], FloatsLike] = (
        required()
    )
    estimator: VerificationTime
    guard_seconds: NonNegative = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        with np.errstate(over="ignore", invalid="ignore"):
            for name, total in (
                ("expected_tokens", self.expected_tokens.sum()),
                ("request_memory_bytes", self.request_memory_bytes.sum()),
                (
                    "estimator",
                    abs(self.now_seconds)
                    + self.estimator.seconds(self.new_tokens, self.cached_tokens),
                ),
            ):
                if not np.isfinite(total):
                    raise InvalidInput(
                        f"{name}: expected a finite sum over all requests, got {total}"
                    )

    @property
    def requests(self) -> int:
        """Number n of pending requests."""
        return len(self.expected_tokens)

    # ------------------------------------------------------------------ the judge

    def evaluate(self, plan: VerificationBatchPlan) -> Evaluation:
        """Return the batch's expected number of verified tokens, which is the summand in Eq. 13.

        The evaluation reports two terms: the tokens of cold requests, which have no cached tokens,
        and the tokens of warm requests.
        """
        self.expect_fit(plan)
        cold, warm = 0.0, 0.0
        expected = self.expected_tokens[plan.batch].tolist()
        for tokens, cached in zip(expected, self.cached_tokens[plan.batch].tolist(), strict=True):
            if cached == 0:
                cold += tokens
            else:
                warm += tokens
        return Evaluation(cold + warm, {"cold_tokens": cold, "warm_tokens": warm})

    def violations(self, plan: VerificationBatchPlan) -> list[str]:
        """Return messages about violations of the memory limit (Eq. 14) and the requests' deadlines
        (Eq. 15).
        """
        found = super().violations(plan)
        if found or len(plan.batch) == 0:
            return found
        batch = plan.batch
        a = self.estimator.seconds_per_new_token
        b_compute = self.estimator.seconds_per_interaction
        b_read = self.estimator.seconds_per_cached_token
        c = self.estimator.overhead_seconds
        linear, interactions, cached = 0, 0, 0
        tokens = self.new_tokens[batch].tolist(), self.cached_tokens[batch].tolist()
        for new, old in zip(*tokens, strict=True):
            linear += new
            interactions += (old + new) * new  # Eq. 18
            cached += old
        # fsum, so that the result does not depend on the order of the batch
        memory = math.fsum(self.request_memory_bytes[batch])
        seconds = a * linear + b_compute * interactions + b_read * cached + c  # Eq. 19
        if exceeds(memory, self.memory_bytes):
            found.append(
                f"batch: the requests need {memory:.6g} bytes of memory, but only"
                f" {self.memory_bytes:.6g} are available"
            )
        for i, due in zip(batch.tolist(), self.deadline_seconds[batch].tolist(), strict=True):
            readings = math.ulp(due) + math.ulp(self.now_seconds)
            if exceeds(seconds, due - self.now_seconds, readings):
                found.append(
                    f"batch: verification takes {seconds:.9g} s, but request {i} is due in"
                    f" {due - self.now_seconds:.9g} s (at {due!r} s)"
                )
        return found

    def _defects(self, plan: VerificationBatchPlan) -> list[str]:
        """Return the reasons why the plan does not match this problem."""
        seen: set[int] = set()
        requests = self.requests
        for position, request in enumerate(plan.batch.tolist()):
            if request >= requests:
                return [f"batch[{position}]: expected a request below {requests}, got {request}"]
            if request in seen:
                return [f"batch[{position}]: request {request} is already in the batch"]
            seen.add(request)
        return []
