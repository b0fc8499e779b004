"""Values correlated with the costs: knapsacks that are hard for every exact method."""

from __future__ import annotations

import dataclasses

import numpy as np

from specopt.instances.verification_batch.pending import mixed
from specopt.models.arguments import number, positive
from specopt.models.verification_batch.problem import VerificationBatchProblem


def correlated(
    *,
    requests: int = 60,
    offset: float = 0.1,
    time_share: float = 0.5,
    memory_share: float = 0.5,
    seed: int = 0,
) -> VerificationBatchProblem:
    """Expected tokens proportional to verification time plus a constant; time and memory both bind.

    Difficulty: all densities are nearly equal. Bounds by density therefore separate batches badly,
    few batches dominate others, and the exact use of time and memory is decisive.

    Parameters
    ----------
    requests
        Number n of pending requests, as in `warm`.
    seed
        Seed of the random generator, as in `warm`.
    offset
        Ratio of the constant to the mean of the proportional part; 0 gives subset sums.
    time_share
        Ratio of the time to the earliest deadline to the time of all requests; deadlines spread up
        to 10 % beyond.
    memory_share
        Ratio of the free memory to the memory of all requests.
    """
    offset = number("offset", offset, 0)
    problem = mixed(requests=requests, cold_share=0.5, seed=seed)
    estimator = problem.estimator
    seconds = estimator.weights(problem.new_tokens, problem.cached_tokens)
    rng = np.random.default_rng((seed, 1))
    mean = float(seconds.mean()) if requests else 0.0
    due = estimator.overhead_seconds + positive("time_share", time_share) * float(seconds.sum())
    return dataclasses.replace(
        problem,
        name=f"correlated n={requests} offset={offset:g} seed={seed}",
        expected_tokens=100.0 * (seconds + offset * mean),
        memory_bytes=positive("memory_share", memory_share)
        * float(problem.request_memory_bytes.sum()),
        deadline_seconds=due * (1.0 + 0.1 * rng.uniform(size=requests)),
    )
