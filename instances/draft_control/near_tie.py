"""Nearly identical states: all choices are almost equally good."""

from __future__ import annotations

import numpy as np

from specopt.models.arguments import integer, number, random_generator
from specopt.models.draft_control.problem import ChannelState, DraftControlProblem
from specopt.models.fields import MAX_TOKENS
from specopt.models.markov_chain import TransitionMatrix


def near_tie(
    *, states: int = 6, spread: float = 1e-4, max_draft: int = 64, seed: int = 0
) -> DraftControlProblem:
    """States and resolutions that differ by a tiny share, with tokens almost always accepted.

    Difficulty: with acceptance near 1 and drafts that cost almost nothing, the rate is flat in the
    draft length and in the resolution. Methods that stop at a relative tolerance, or compare rates
    in another order, choose differently. Only a proof shows which choice is best.

    Parameters
    ----------
    states
        Number of states S, as in `random`.
    seed
        Seed of the random generator, as in `random`.
    spread
        Relative spread of the uplink rates and of one minus the acceptance rates.
    max_draft
        Maximum draft length.
    """
    rng = random_generator(seed)
    count = integer("states", states, 1, MAX_TOKENS)
    width = number("spread", spread, 0.0, 1.0)
    resolutions = np.array([100, 101, 102, 103])
    jumps = 1.0 + rng.uniform(size=(count, count))
    return DraftControlProblem(
        name=f"near-tie S={states} spread={spread:g} L=1..{max_draft} seed={seed}",
        vocabulary_size=50272,
        draft_seconds_per_token=1e-3,
        verify_seconds=0.1,
        draft_lengths=(1, max_draft),
        resolutions=resolutions,
        states=tuple(
            ChannelState(
                uplink_bits_per_second=2e6 * (1.0 + width * rng.uniform()),
                acceptance_rates=0.98 + 0.02 * width * rng.uniform(size=len(resolutions)),
                downlink_bits_per_second=8e6,
            )
            for _ in range(count)
        ),
        transition=TransitionMatrix(jumps / jumps.sum(axis=1, keepdims=True)),
    )
