"""Small requests of high value per second that exclude one large request of high value."""

from __future__ import annotations

import numpy as np

from specopt.instances.verification_batch.pending import (
    AMPLE_BYTES,
    COEFFICIENTS,
    KV_BYTES_PER_TOKEN,
)
from specopt.models.arguments import integer, positive, random_generator
from specopt.models.fields import MAX_TOKENS
from specopt.models.verification_batch.problem import VerificationBatchProblem


def density_trap(
    *, requests: int = 20, ratio: float = 50.0, seed: int = 0
) -> VerificationBatchProblem:
    """One deadline, one long prompt that just meets it, and short warm requests of slightly higher
    value per second.

    Difficulty: by value per second the short requests come first, and after any of them the long
    one no longer fits. A greedy batch has about the value of the short requests together; the best
    batch has `ratio` times that value.

    Parameters
    ----------
    requests
        Number n of pending requests, including the long one; at least 2.
    ratio
        Approximate ratio of the value of the long request to that of all others together.
    seed
        Seed of `numpy.random.default_rng`.
    """
    count = integer("requests", requests, 2, MAX_TOKENS) - 1
    positive("ratio", ratio)
    rng = random_generator(seed)
    estimator = COEFFICIENTS["table-12"]
    new = rng.integers(2, 9, size=count, endpoint=True)
    cached = rng.integers(50, 400, size=count, endpoint=True)
    seconds = estimator.weights(new, cached)
    long_seconds, tokens = ratio * float(seconds.sum()), 1
    while float(estimator.weights(np.array([tokens]), np.array([0]))[0]) < long_seconds:
        tokens *= 2
    long_seconds = float(estimator.weights(np.array([tokens]), np.array([0]))[0])
    return VerificationBatchProblem(
        name=f"density-trap n={requests} ratio={ratio:g} seed={seed}",
        now_seconds=0.0,
        memory_bytes=AMPLE_BYTES,
        expected_tokens=np.append(1.01 * seconds, long_seconds) * 100.0,
        new_tokens=np.append(new, tokens),
        cached_tokens=np.append(cached, 0),
        request_memory_bytes=np.append(new + cached, tokens) * float(KV_BYTES_PER_TOKEN),
        deadline_seconds=np.full(requests, estimator.overhead_seconds + long_seconds * 1.0001),
        estimator=estimator,
    )
