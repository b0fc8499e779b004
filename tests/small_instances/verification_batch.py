"""Small instances of `verification-batch` for the conformance suite."""

from __future__ import annotations

import dataclasses

from specopt import Problem, VerificationBatchProblem, generate


def _instances() -> dict[str, Problem]:
    """Small instances of `verification-batch`: no, one and some requests, ties, late ones, tight
    and no memory.
    """
    family = "verification-batch"
    base = generate(f"{family}/mixed", requests=10, seed=1)
    assert isinstance(base, VerificationBatchProblem)
    replace = dataclasses.replace
    n = base.requests
    return {
        "base": base,
        "no requests": generate(f"{family}/warm", requests=0),
        "one request": generate(f"{family}/warm", requests=1, seed=4),
        "tight": generate(f"{family}/tight", requests=12, seed=2),
        "memory": generate(f"{family}/memory-bound", requests=12, seed=3),
        "no memory": replace(base, memory_bytes=0.0),
        "all late": replace(base, deadline_seconds=[-1.0] * n),
        "all fit": replace(base, deadline_seconds=[9.0] * n),
        "equal deadlines": replace(base, deadline_seconds=[0.04] * n),
        "equal requests": replace(
            base,
            expected_tokens=[2.0] * n,
            new_tokens=[4] * n,
            cached_tokens=[500] * n,
            deadline_seconds=[0.03] * n,
        ),
        "worth nothing": replace(base, expected_tokens=[0.0] * n),
        "free": replace(base, new_tokens=[0] * n, cached_tokens=[0] * n),
        "guarded": replace(base, guard_seconds=0.05),
    }


INSTANCES = _instances()
