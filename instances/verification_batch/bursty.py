"""Deadlines in bursts: requests that arrived together have the same deadline."""

from __future__ import annotations

import dataclasses

import numpy as np

from specopt.instances.verification_batch.pending import mixed
from specopt.models.arguments import integer, positive
from specopt.models.fields import MAX_TOKENS
from specopt.models.verification_batch.problem import VerificationBatchProblem


def bursty(
    *, requests: int = 100, bursts: int = 5, spacing_seconds: float = 0.05, seed: int = 0
) -> VerificationBatchProblem:
    """Requests whose deadlines fall on a few instants, one burst each; a third of them are cold.

    Difficulty: whole groups enter and leave with one deadline, ties are everywhere, and including
    one request of an early burst delays all later ones. Ordering by earliest deadline commits to it
    at once.

    Parameters
    ----------
    requests
        Number n of pending requests, as in `warm`.
    seed
        Seed of the random generator, as in `warm`.
    bursts
        Number of distinct deadlines.
    spacing_seconds
        Time between two bursts, and from now to the first.
    """
    spacing_seconds = positive("spacing_seconds", spacing_seconds)
    problem = mixed(requests=requests, cold_share=0.3, seed=seed)
    burst = np.random.default_rng((seed, 1)).integers(
        1, integer("bursts", bursts, 1, MAX_TOKENS), size=requests, endpoint=True
    )
    return dataclasses.replace(
        problem,
        name=f"bursty n={requests} bursts={bursts} every {spacing_seconds:g} s seed={seed}",
        deadline_seconds=burst.astype(np.float64) * spacing_seconds,
    )
