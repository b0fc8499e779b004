"""Requests that wait for a verifier: warm, mixed, tight and memory-bound (paper 2, Sec. 4).

The paper prints no trace of its pending requests. Here they are drawn: response speeds from its
four service classes, drafts of a few tokens, contexts of log-normal length, and deadlines spread
over the time that a class allows for one iteration.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from specopt.instances.verification_batch.workload import CLASS_SPEEDS, TABLE_12
from specopt.models.acceptance import expected_tokens
from specopt.models.arguments import integer, number, one_of, positive, random_generator
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, Ints
from specopt.models.pass_time import VerificationTime
from specopt.models.verification_batch.problem import VerificationBatchProblem

COEFFICIENTS = {
    "table-12": TABLE_12,
    # paper 2, Sec. 4.4, which prints no constant: the constant is that of Table 12
    "section-4.4": VerificationTime(
        seconds_per_new_token=143.39e-6,
        seconds_per_interaction=2.53e-9,
        seconds_per_cached_token=2.67e-6,
        overhead_seconds=TABLE_12.overhead_seconds,
    ),
}
"""The paper prints these two sets of coefficients, which contradict each other."""

KV_BYTES_PER_TOKEN = 64 * 8 * 128 * 2 * 2
"""Qwen3-32B has 64 layers, 8 heads of 128 for keys and values each, and 2 bytes per value."""

AMPLE_BYTES = 1e15


def warm(
    *, requests: int = 100, coefficients: str = "table-12", seed: int = 0
) -> VerificationBatchProblem:
    """Warm caches: a few draft tokens in addition to a long cached context.

    Parameters
    ----------
    requests
        Number n of pending requests.
    coefficients
        Estimator, as printed in paper 2: "table-12" or "section-4.4".
    seed
        Seed of `numpy.random.default_rng`.
    """
    return _pending("warm", requests, coefficients, seed)


def mixed(
    *, requests: int = 100, cold_share: float = 0.3, coefficients: str = "table-12", seed: int = 0
) -> VerificationBatchProblem:
    """Cold and warm requests together: some include a whole prompt.

    Parameters
    ----------
    requests
        Number n of pending requests, as in `warm`.
    coefficients
        Coefficients of the estimator, as in `warm`.
    seed
        Seed of the random generator, as in `warm`.
    cold_share
        Probability that a request has nothing cached.
    """
    return _pending("mixed", requests, coefficients, seed, cold_share=cold_share)


def tight(
    *,
    requests: int = 100,
    longest_seconds: float = 0.08,
    coefficients: str = "table-12",
    seed: int = 0,
) -> VerificationBatchProblem:
    """Short budgets: every deadline is near, and a batch holds only a few requests.

    Parameters
    ----------
    requests
        Number n of pending requests, as in `warm`.
    coefficients
        Coefficients of the estimator, as in `warm`.
    seed
        Seed of the random generator, as in `warm`.
    longest_seconds
        Latest deadline in seconds from now; deadlines are uniform up to it.
    """
    longest_seconds = positive("longest_seconds", longest_seconds)
    return _pending(
        "tight", requests, coefficients, seed, cold_share=0.15, longest_seconds=longest_seconds
    )


def memory_bound(
    *,
    requests: int = 100,
    memory_share: float = 0.15,
    coefficients: str = "table-12",
    seed: int = 0,
) -> VerificationBatchProblem:
    """Binding memory: the verifier has memory for a share of the pending requests.

    Parameters
    ----------
    requests
        Number n of pending requests, as in `warm`.
    coefficients
        Coefficients of the estimator, as in `warm`.
    seed
        Seed of the random generator, as in `warm`.
    memory_share
        Ratio of the free memory to the memory of all pending requests.
    """
    memory_share = number("memory_share", memory_share, 0)
    return _pending(
        "memory-bound", requests, coefficients, seed, cold_share=0.3, memory_share=memory_share
    )


def with_contexts(
    problem: VerificationBatchProblem, contexts: Ints, *, seed: int
) -> VerificationBatchProblem:
    """Return a problem of these families with contexts of given lengths; all other draws are
    unchanged.

    Drafts, speed classes, deadlines and the choice of cold requests do not depend on contexts.
    Scarce memory keeps its share of the memory that all requests need; ample memory stays ample.

    Parameters
    ----------
    problem
        Problem that a family returned.
    contexts
        Number of tokens before the draft, per request.
    seed
        Seed that was passed to the family.

    Raises
    ------
    InvalidInput
        If the number of contexts differs from the number of requests.
    """
    if len(contexts) != problem.requests:
        raise InvalidInput(
            f"contexts: expected {problem.requests} lengths, one per request, got {len(contexts)}"
        )
    drafted = drafted_tokens(seed, problem.requests)
    cold = problem.cached_tokens == 0
    memory = ((contexts + drafted + 1) * KV_BYTES_PER_TOKEN).astype(np.float64)
    needed = float(memory.sum())
    drawn = float(problem.request_memory_bytes.sum())
    ample = problem.memory_bytes == AMPLE_BYTES or drawn == 0.0
    return dataclasses.replace(
        problem,
        memory_bytes=max(AMPLE_BYTES, needed) if ample else problem.memory_bytes / drawn * needed,
        new_tokens=np.where(cold, contexts, 0) + drafted + 1,
        cached_tokens=np.where(cold, 0, contexts),
        request_memory_bytes=memory,
    )


def drafted_tokens(seed: int, requests: int) -> Ints:
    """Return the number of draft tokens of each request, which depends only on the seed."""
    return _drafted(random_generator(seed), requests)


def _drafted(rng: np.random.Generator, requests: int) -> Ints:
    """Draw the draft tokens of each request; these are the first draw of a seed."""
    return rng.integers(1, 8, size=requests, endpoint=True)


def _pending(
    family: str,
    requests: int,
    coefficients: str,
    seed: int,
    *,
    cold_share: float = 0.0,
    longest_seconds: float | None = None,
    memory_share: float | None = None,
) -> VerificationBatchProblem:
    requests = integer("requests", requests, 0, MAX_TOKENS)
    cold_share = number("cold_share", cold_share, 0, 1)
    coefficients = one_of("coefficients", coefficients, COEFFICIENTS)
    rng = random_generator(seed)
    drafted = _drafted(rng, requests)
    acceptance = rng.uniform(0.55, 0.85, size=requests)
    context = np.clip(np.exp(rng.normal(np.log(400.0), 0.7, size=requests)), 16, 8192).astype(
        np.int64
    )
    cold = rng.uniform(size=requests) < cold_share
    speed = rng.choice(CLASS_SPEEDS, size=requests)
    left = rng.uniform(size=requests)
    tokens = expected_tokens(acceptance, drafted)
    memory = ((context + drafted + 1) * KV_BYTES_PER_TOKEN).astype(np.float64)
    return VerificationBatchProblem(
        name=f"{family} n={requests} seed={seed}",
        now_seconds=0.0,
        memory_bytes=AMPLE_BYTES if memory_share is None else memory_share * float(memory.sum()),
        expected_tokens=tokens,
        new_tokens=np.where(cold, context, 0) + drafted + 1,
        cached_tokens=np.where(cold, 0, context),
        request_memory_bytes=memory,
        deadline_seconds=left * (tokens / speed if longest_seconds is None else longest_seconds),
        estimator=COEFFICIENTS[coefficients],
    )
