"""Verification batching: which pending requests the verifier takes next, under deadlines and memory
(paper 2).

One dispatch epoch t_k of problem (13)-(15): the batch that is expected to yield the most verified
tokens, among those that fit the memory M(t_k) and end before the deadline of every member. A
request can be late already: if it cannot meet its deadline even alone, c + w_i > d_i - now, no
feasible batch holds it. It stays out, whatever it is worth.
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


@dataclass(frozen=True, kw_only=True, eq=False)
class VerificationBatchPlan(Plan):
    """Which requests are verified together.

    Parameters
    ----------
    batch
        Indices of the requests; empty if none is taken.
    """

    batch: Given[Annotated[Ints, Column(NonNegativeInt, "batch", 0)], IntsLike] = required()


@dataclass(frozen=True, kw_only=True, eq=False)
class VerificationBatchProblem(Problem[VerificationBatchPlan]):
    """Maximise the tokens that the next batch is expected to verify (paper 2, Eq. 13-15 at one
    epoch).

    The order of the requests is the order of their arrival; there may be none.

    Parameters
    ----------
    now_seconds
        t_k, when the batch starts.
    memory_bytes
        M(t_k), what the verifier has free.
    expected_tokens
        Per request: the tokens that its verification is expected to yield (Eq. 5).
    new_tokens, cached_tokens
        Per request: L_new tokens to compute, L_cached tokens to read.
    request_memory_bytes
        Per request: what it occupies.
    deadline_seconds
        Per request: when its batch must have ended (Eq. 12), on the clock of `now_seconds`.
    estimator
        Time of a batch (Eq. 18-19).
    guard_seconds
        delta of Eq. 17: used by Algorithm 1, never for feasibility.

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
    expected_tokens: Given[Annotated[Floats, Column(NonNegative, "request", 0)], FloatsLike] = (
        required()
    )
    new_tokens: Given[Annotated[Ints, Column(NonNegativeInt, "request", 0)], IntsLike] = required()
    cached_tokens: Given[Annotated[Ints, Column(NonNegativeInt, "request", 0)], IntsLike] = (
        required()
    )
    request_memory_bytes: Given[
        Annotated[Floats, Column(NonNegative, "request", 0)], FloatsLike
    ] = required()
    deadline_seconds: Given[Annotated[Floats, Column(float, "request", 0)], FloatsLike] = required()
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
        """Number of pending requests n."""
        return len(self.expected_tokens)

    # ------------------------------------------------------------------ the judge

    def evaluate(self, plan: VerificationBatchPlan) -> Evaluation:
        """Return the sum of the expected tokens of the batch (the summand of Eq. 13).

        The terms tell cold requests, without cached tokens, from warm ones.
        """
        self.expect_plan(plan)
        defects = self._defects(plan)
        if defects:
            raise InvalidInput(defects[0])
        cold, warm = 0.0, 0.0
        for request in plan.batch.tolist():
            if self.cached_tokens[request] == 0:
                cold += float(self.expected_tokens[request])
            else:
                warm += float(self.expected_tokens[request])
        return Evaluation(cold + warm, {"cold_tokens": cold, "warm_tokens": warm})

    def violations(self, plan: VerificationBatchPlan) -> list[str]:
        """Return what the plan violates: memory (Eq. 14), and the deadline of every member (Eq.
        15).
        """
        self.expect_plan(plan)
        found = self._defects(plan)
        if found or len(plan.batch) == 0:
            return found
        batch = plan.batch.tolist()
        a, b_compute = self.estimator.seconds_per_new_token, self.estimator.seconds_per_interaction
        b_read, c = self.estimator.seconds_per_cached_token, self.estimator.overhead_seconds
        linear, interactions, cached = 0, 0, 0
        for i in batch:
            new, old = int(self.new_tokens[i]), int(self.cached_tokens[i])
            linear += new
            interactions += (old + new) * new  # Eq. 18
            cached += old
        memory = math.fsum(self.request_memory_bytes[batch])  # the same in every order of the batch
        seconds = a * linear + b_compute * interactions + b_read * cached + c  # Eq. 19
        if exceeds(memory, self.memory_bytes):
            found.append(
                f"batch: needs {memory:.6g} bytes of memory, {self.memory_bytes:.6g} are available"
            )
        for i in batch:
            due = float(self.deadline_seconds[i])
            readings = float(np.spacing(abs(due)) + np.spacing(abs(self.now_seconds)))
            if exceeds(seconds, due - self.now_seconds, readings):
                found.append(
                    f"batch: takes {seconds:.9g} s, request {i} is due in"
                    f" {due - self.now_seconds:.9g} s (at {due!r} s)"
                )
        return found

    def _defects(self, plan: VerificationBatchPlan) -> list[str]:
        """Return why the plan is no plan for this problem at all."""
        seen: set[int] = set()
        for position, request in enumerate(plan.batch.tolist()):
            if request >= self.requests:
                return [
                    f"batch[{position}]: expected a request below {self.requests}, got {request}"
                ]
            if request in seen:
                return [f"batch[{position}]: request {request} is in the batch already"]
            seen.add(request)
        return []
