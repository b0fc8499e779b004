"""A family with random states, acceptance rates and transitions, for any number of states."""

from __future__ import annotations

import math

import numpy as np

from specopt.models.arguments import integer, number, positive, random_generator
from specopt.models.draft_control.problem import ChannelState, DraftControlProblem
from specopt.models.markov_chain import TransitionMatrix

FINEST = 1000
MAX_STATES = 10_000


def random(
    *,
    states: int = 20,
    resolutions: int = 5,
    min_draft: int = 1,
    max_draft: int = 53,
    slow_bits_per_second: float = 1e5,
    fast_bits_per_second: float = 1e7,
    downlink_factor: float = 4.0,
    stay: float = 0.5,
    seed: int = 0,
) -> DraftControlProblem:
    """States with log-uniform link rates and random acceptance rates.

    Every state can follow every other state. Timings and vocabulary are those of OPT-125M and
    OPT-13B: 5 ms per drafted token, 32 ms per verification, 50272 tokens.

    Parameters
    ----------
    states
        Number of states S.
    resolutions
        Number of lattice resolutions, spaced evenly on a logarithmic scale from 10 to 1000.
    min_draft
        Minimum draft length.
    max_draft
        Maximum draft length.
    slow_bits_per_second
        Lower end of the log-uniform distribution of uplink rates, in bits per second.
    fast_bits_per_second
        Upper end of the log-uniform distribution of uplink rates, in bits per second.
    downlink_factor
        Ratio of the downlink to the uplink rate; 0 for a free downlink.
    stay
        Probability of staying in a state, in addition to the probability that the random transition
        leads back to the same state.
    seed
        Seed of `numpy.random.default_rng`.
    """
    states = integer("states", states, 1, MAX_STATES)
    slow_bits_per_second = positive("slow_bits_per_second", slow_bits_per_second)
    fastest = number("fast_bits_per_second", fast_bits_per_second, slow_bits_per_second)
    downlink_factor = number("downlink_factor", downlink_factor, 0)
    stay = number("stay", stay, 0, below=1)
    rng = random_generator(seed)
    spread = math.log(fastest / slow_bits_per_second)
    uplinks = slow_bits_per_second * np.exp(spread * rng.uniform(size=states))
    resolutions = integer("resolutions", resolutions, 1, FINEST // 10)
    values = np.unique(np.round(np.geomspace(10, FINEST, resolutions)).astype(np.int64))
    best = rng.uniform(0.4, 0.95, size=states)
    losses = rng.uniform(0.3, 1.5, size=states)[:, None] / np.sqrt(
        values
    )  # finer lattices lose less
    rates = np.clip(best[:, None] - losses, 0.0, 1.0)
    jumps = rng.exponential(size=(states, states))
    jumps /= jumps.sum(axis=1, keepdims=True)
    return DraftControlProblem(
        vocabulary_size=50272,
        draft_seconds_per_token=5e-3,
        verify_seconds=32e-3,
        draft_lengths=(min_draft, max_draft),
        resolutions=values,
        states=tuple(
            ChannelState(
                uplink_bits_per_second=uplink,
                acceptance_rates=row,
                downlink_bits_per_second=uplink * downlink_factor if downlink_factor else None,
            )
            for uplink, row in zip(uplinks.tolist(), rates, strict=True)
        ),
        transition=TransitionMatrix(stay * np.eye(states) + (1.0 - stay) * jumps),
    )
