"""One urgent request that has already missed its deadline: Algorithm 1 of paper 2 stops there."""

from __future__ import annotations

import dataclasses

import numpy as np

from specopt.instances.verification_batch.pending import mixed
from specopt.models.arguments import integer
from specopt.models.fields import MAX_TOKENS
from specopt.models.verification_batch.problem import VerificationBatchProblem


def hopeless_urgent(
    *, requests: int = 100, hopeless: int = 1, seed: int = 0
) -> VerificationBatchProblem:
    """Cold and warm requests, the first few of which can no longer meet their deadlines.

    Difficulty: none for an exact method. But the most urgent critical request comes first in
    Algorithm 1, it does not fit, and as printed the algorithm stops there. Its batch is empty,
    whatever the value of the other requests.

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
        name=f"hopeless-urgent n={requests} hopeless={hopeless} seed={seed}",
        deadline_seconds=np.where(
            late, -1e-3 * (1.0 + np.arange(requests)), problem.deadline_seconds
        ),
    )
