"""Hypothesis strategies for `verification-batch` problems and plans.

All numbers can be summed without rounding errors. Limits can therefore hold with exact equality.
"""

from __future__ import annotations

from hypothesis import strategies as st

from specopt.kinds.columns import lists_of
from specopt.models.verification_batch.problem import (
    VerificationBatchPlan,
    VerificationBatchProblem,
)

BIT = 2.0**-10


@st.composite
def problems(
    draw: st.DrawFn, requests: tuple[int, int] = (0, 7), ample_memory: bool = False
) -> VerificationBatchProblem:
    """Draw a valid problem whose times are multiples of 2^-10 s, so that ties are common."""
    n = draw(st.integers(*requests))
    start = draw(st.integers(-8, 8))

    def column(values: st.SearchStrategy[float]) -> list[float]:
        return draw(lists_of(values, n))

    return VerificationBatchProblem.from_dict(
        {
            "format": "specopt/1",
            "kind": VerificationBatchProblem.kind,
            "now_seconds": start * BIT,
            "memory_bytes": 1e9 if ample_memory else float(draw(st.integers(0, 30))),
            "guard_seconds": draw(st.integers(0, 4)) * BIT,
            "expected_tokens": column(st.sampled_from((0.0, 0.5, 1.0, 1.5, 2.0, 2.25, 3.0, 5.125))),
            "new_tokens": column(st.integers(1, 8)),
            "cached_tokens": column(st.just(0) | st.integers(0, 8)),
            "request_memory_bytes": column(st.integers(0, 12).map(float)),
            "deadline_seconds": column(st.integers(start - 5, start + 60).map(lambda x: x * BIT)),
            "estimator": {
                "seconds_per_new_token": draw(st.integers(1, 3)) * BIT,
                "seconds_per_interaction": draw(st.integers(0, 1)) * BIT / 8,
                "seconds_per_cached_token": draw(st.integers(0, 2)) * BIT / 4,
                "overhead_seconds": draw(st.integers(0, 8)) * BIT,
            },
        }
    )


@st.composite
def plans(draw: st.DrawFn, problem: VerificationBatchProblem) -> VerificationBatchPlan:
    """Draw a random batch of requests, which is shortened at its end until it is feasible."""
    batch = draw(st.permutations(range(problem.requests)))[: draw(st.integers(0, problem.requests))]
    while batch and problem.violations(VerificationBatchPlan.from_dict({"batch": batch})):
        batch = batch[:-1]
    return VerificationBatchPlan.from_dict({"batch": batch})
