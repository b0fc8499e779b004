"""A link that cycles through its rates in a fixed order: a periodic chain."""

from __future__ import annotations

import math

import numpy as np

from specopt.models.arguments import integer, positive, random_generator
from specopt.models.draft_control.problem import ChannelState, DraftControlProblem
from specopt.models.fields import MAX_TOKENS
from specopt.models.markov_chain import TransitionMatrix


def deterministic_cycle(
    *,
    states: int = 8,
    contrast: float = 200.0,
    max_draft: int = 32,
    min_draft: int = 0,
    seed: int = 0,
) -> DraftControlProblem:
    """States visited in a fixed cycle, with uplink rates that differ by a large factor.

    Difficulty: powers of the transition matrix do not converge, so iterative methods must not rely
    on convergence. Waiting for the fast link pays, although the rate of a single iteration does not
    show it.

    Parameters
    ----------
    states
        Length of the cycle.
    contrast
        Ratio of the fastest to the slowest uplink rate.
    min_draft
        Minimum draft length.
    max_draft
        Maximum draft length.
    seed
        Seed of `numpy.random.default_rng`, for the order of the links and the acceptance rates.
    """
    rng = random_generator(seed)
    count = integer("states", states, 1, MAX_TOKENS)
    uplinks = rng.permutation(
        5e4 * np.exp(np.linspace(0.0, math.log(positive("contrast", contrast)), count))
    )
    resolutions = np.array([30, 100, 300])
    best = rng.uniform(0.5, 0.95, size=count)
    return DraftControlProblem(
        name=(
            f"deterministic-cycle S={states} contrast={contrast:g} L={min_draft}..{max_draft}"
            f" seed={seed}"
        ),
        vocabulary_size=50272,
        draft_seconds_per_token=2e-3,
        verify_seconds=0.06,
        draft_lengths=(min_draft, max_draft),
        resolutions=resolutions,
        states=tuple(
            ChannelState(
                uplink_bits_per_second=uplink, acceptance_rates=rate - 0.8 / np.sqrt(resolutions)
            )
            for uplink, rate in zip(uplinks.tolist(), best.tolist(), strict=True)
        ),
        transition=TransitionMatrix(np.roll(np.eye(count), 1, axis=1)),
    )
