"""Families (problem generators) of pending requests that are hard to batch.

Each family is hard for a different reason.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from specopt.instances.verification_batch.pending import (
    AMPLE_BYTES,
    COEFFICIENTS,
    KV_BYTES_PER_TOKEN,
    mixed,
)
from specopt.models.arguments import integer, number, positive, random_generator
from specopt.models.fields import MAX_TOKENS
from specopt.models.verification_batch.problem import VerificationBatchProblem


def bursty(
    *, requests: int = 100, bursts: int = 5, spacing_seconds: float = 0.05, seed: int = 0
) -> VerificationBatchProblem:
    """Cold and warm requests whose deadlines coincide in a few bursts.

    About 30 % of the requests are cold.

    Difficulty: whole groups with the same deadline enter or leave the batch, and there are many
    ties. Including one request from an early burst limits the duration of the whole batch, and
    methods that order requests by deadline include such a request first.

    Parameters
    ----------
    requests
        Number n of pending requests, as in `warm`.
    seed
        Seed of the random generator, as in `warm`.
    bursts
        Number of distinct deadlines.
    spacing_seconds
        Time between two bursts, and between the current time and the first burst, in seconds.
    """
    problem = mixed(requests=requests, cold_share=0.3, seed=seed)
    burst = np.random.default_rng((seed, 1)).integers(
        1, integer("bursts", bursts, 1, MAX_TOKENS), size=requests, endpoint=True
    )
    return dataclasses.replace(
        problem,
        deadline_seconds=burst.astype(np.float64) * positive("spacing_seconds", spacing_seconds),
    )


def correlated(
    *,
    requests: int = 60,
    offset: float = 0.1,
    time_share: float = 0.5,
    memory_share: float = 0.5,
    seed: int = 0,
) -> VerificationBatchProblem:
    """Requests whose expected tokens are a constant plus an amount proportional to verification
    time.

    Both time and memory bind.

    Difficulty: the ratio of expected tokens to time is nearly the same for all requests. Bounds
    based on this ratio therefore hardly distinguish batches, few batches dominate others, and the
    exact use of time and memory is decisive.

    Parameters
    ----------
    requests
        Number n of pending requests, as in `warm`.
    seed
        Seed of the random generator, as in `warm`.
    offset
        Ratio of the constant to the mean of the proportional part; 0 yields subset-sum problems.
    time_share
        Ratio of the time until the earliest deadline to the total verification time of all
        requests. The other deadlines are up to 10 % later.
    memory_share
        Ratio of the free memory to the total memory that all requests need.
    """
    problem = mixed(requests=requests, cold_share=0.5, seed=seed)
    estimator = problem.estimator
    seconds = estimator.weights(problem.new_tokens, problem.cached_tokens)
    rng = np.random.default_rng((seed, 1))
    mean = float(seconds.mean()) if requests else 0.0
    due = estimator.overhead_seconds + positive("time_share", time_share) * float(seconds.sum())
    return dataclasses.replace(
        problem,
        expected_tokens=100.0 * (seconds + number("offset", offset, 0) * mean),
        memory_bytes=positive("memory_share", memory_share)
        * float(problem.request_memory_bytes.sum()),
        deadline_seconds=due * (1.0 + 0.1 * rng.uniform(size=requests)),
    )


def density_trap(
    *, requests: int = 20, ratio: float = 50.0, seed: int = 0
) -> VerificationBatchProblem:
    """One long prompt that only just meets the common deadline, and many short warm requests.

    The short requests have a slightly higher value per second of verification.

    Difficulty: if requests are added in order of value per second, the short requests come first,
    and the long request no longer fits once any of them is in the batch. A greedy batch has about
    the total value of the short requests, whereas the best batch has `ratio` times that value.

    Parameters
    ----------
    requests
        Number n of pending requests, including the long request; at least 2.
    ratio
        Approximate ratio of the long request's value to the total value of all other requests.
    seed
        Seed of `numpy.random.default_rng`.
    """
    count = integer("requests", requests, 2, MAX_TOKENS) - 1
    rng = random_generator(seed)
    estimator = COEFFICIENTS["table-12"]
    new = rng.integers(2, 9, size=count, endpoint=True)
    cached = rng.integers(50, 400, size=count, endpoint=True)
    seconds = estimator.weights(new, cached)
    least, tokens = positive("ratio", ratio) * float(seconds.sum()), 1
    while (long_seconds := float(estimator.weights(np.array([tokens]), np.array([0]))[0])) < least:
        tokens *= 2
    return VerificationBatchProblem(
        now_seconds=0.0,
        memory_bytes=AMPLE_BYTES,
        expected_tokens=np.append(1.01 * seconds, long_seconds) * 100.0,
        new_tokens=np.append(new, tokens),
        cached_tokens=np.append(cached, 0),
        request_memory_bytes=np.append(new + cached, tokens) * float(KV_BYTES_PER_TOKEN),
        deadline_seconds=np.full(requests, estimator.overhead_seconds + long_seconds * 1.0001),
        estimator=estimator,
    )


def hopeless_urgent(
    *, requests: int = 100, hopeless: int = 1, seed: int = 0
) -> VerificationBatchProblem:
    """Cold and warm requests, the first few of which can no longer meet their deadlines.

    Difficulty: none for an exact method. Algorithm 1, however, first considers the most urgent
    critical request. This request does not fit, and the algorithm, as printed, then stops. The
    batch is therefore empty, regardless of the value of the other requests.

    Parameters
    ----------
    requests
        Number n of pending requests, as in `warm`.
    seed
        Seed of the random generator, as in `warm`.
    hopeless
        Number of requests whose deadlines have passed.
    """
    problem = mixed(requests=requests, cold_share=0.3, seed=seed)
    late = np.arange(requests) < integer("hopeless", hopeless, 0, MAX_TOKENS)
    return dataclasses.replace(
        problem,
        deadline_seconds=np.where(
            late, -1e-3 * (1.0 + np.arange(requests)), problem.deadline_seconds
        ),
    )
