"""Families (problem generators) whose channels are hard for greedy or iterative methods.

Each family is hard for a different reason.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from specopt.instances.draft_control.random import random
from specopt.models.arguments import integer, number, positive, random_generator
from specopt.models.draft_control.problem import ChannelState, DraftControlProblem
from specopt.models.fields import MAX_TOKENS
from specopt.models.markov_chain import TransitionMatrix


def alternating(
    *,
    slow_bits_per_second: float = 50e3,
    fast_bits_per_second: float = 10e6,
    acceptance_rate: float = 0.9,
    draft_seconds_per_token: float = 1e-3,
    verify_seconds: float = 0.1,
    vocabulary_size: int = 50272,
    resolution: int = 100,
    min_draft: int = 1,
    max_draft: int = 32,
    seed: int = 0,
) -> DraftControlProblem:
    """An uplink that alternates between slow and fast at every iteration (paper 3).

    The states form a Markov chain of period 2. Maximising the tokens per second of each iteration
    separately (Eq. 13) is far from optimal in the long run. Drafting on the slow link pays off, but
    moving on to the next iteration, on the fast link, pays off more.

    Parameters
    ----------
    slow_bits_per_second
        Uplink rate of the slow state, in bits per second. The downlink is free.
    fast_bits_per_second
        Uplink rate of the fast state, in bits per second.
    acceptance_rate
        Acceptance rate in both states.
    draft_seconds_per_token
        Drafting time T_SLM per token, in seconds.
    verify_seconds
        Verification time T_LLM, in seconds.
    vocabulary_size
        Size V of the vocabulary.
    resolution
        Lattice resolution. The problem has no other resolution.
    min_draft
        Minimum draft length.
    max_draft
        Maximum draft length.
    seed
        Not used; the instance is deterministic.
    """
    rates = (
        positive("slow_bits_per_second", slow_bits_per_second),
        positive("fast_bits_per_second", fast_bits_per_second),
    )
    return DraftControlProblem(
        vocabulary_size=vocabulary_size,
        draft_seconds_per_token=draft_seconds_per_token,
        verify_seconds=verify_seconds,
        draft_lengths=(min_draft, max_draft),
        resolutions=np.array([resolution]),
        states=tuple(
            ChannelState(uplink_bits_per_second=rate, acceptance_rates=np.array([acceptance_rate]))
            for rate in rates
        ),
        transition=TransitionMatrix(np.array([[0.0, 1.0], [1.0, 0.0]])),
    )


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
    on convergence. Waiting for the fast link pays off, although the rate of a single iteration does
    not show this.

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


def near_tie(
    *, states: int = 6, spread: float = 1e-4, max_draft: int = 64, seed: int = 0
) -> DraftControlProblem:
    """States and resolutions that are almost equivalent, with acceptance rates close to 1.

    Difficulty: acceptance is close to 1 and drafts cost almost nothing, so the rate is nearly
    constant in the draft length and in the resolution. Methods that stop at a relative tolerance,
    or that compare rates in a different order, may choose different actions. Only a proof shows
    which choice is best.

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


def slow_mixing(*, states: int = 10, leave: float = 1e-4, seed: int = 0) -> DraftControlProblem:
    """States in two halves between which transitions are rare; links and acceptance are random.

    Difficulty: value iteration needs about 1 / `leave` sweeps, whereas policy iteration needs only
    a few linear solves. A trace of typical length visits only one half, so a policy learnt from the
    trace covers only that half.

    Parameters
    ----------
    states
        Number of states S, at least 2.
    leave
        Probability of leaving a half, in (0, 1).
    seed
        Seed of `numpy.random.default_rng`.
    """
    integer("seed", seed, 0)
    count = integer("states", states, 2, MAX_TOKENS)
    leave = number("leave", leave, above=0, below=1)
    first = np.arange(count) < count // 2
    same = first[:, None] == first
    jumps = 1.0 + np.random.default_rng((seed, 1)).uniform(size=(count, count))
    inside, outside = jumps * same, jumps * ~same
    rows = (1.0 - leave) * inside / inside.sum(axis=1, keepdims=True)
    rows += leave * outside / outside.sum(axis=1, keepdims=True)
    base = random(states=count, resolutions=3, max_draft=32, seed=seed)
    return dataclasses.replace(
        base,
        transition=TransitionMatrix(rows),
    )
