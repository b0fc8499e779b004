"""A link that is slow and fast by turns: where the greedy reward of paper 3 fails."""

from __future__ import annotations

import numpy as np

from specopt.models.arguments import positive
from specopt.models.draft_control.problem import ChannelState, DraftControlProblem
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
    """An uplink that changes from slow to fast and back at every iteration (paper 3): a chain of
    period 2.

    The most tokens per second of each iteration by itself (Eq. 13) is far from the most in the long
    run here. Drafts pay on the slow link, but less than the next iteration on the fast link.

    Parameters
    ----------
    slow_bits_per_second, fast_bits_per_second
        Uplink rates of the two states; the downlink is free.
    acceptance_rate
        In both states.
    draft_seconds_per_token, verify_seconds
        T_SLM, T_LLM.
    vocabulary_size
        V.
    resolution
        The only lattice resolution.
    min_draft, max_draft
        Draft lengths allowed.
    seed
        Not used: nothing here is random.
    """
    slow_bits_per_second = positive("slow_bits_per_second", slow_bits_per_second)
    fast_bits_per_second = positive("fast_bits_per_second", fast_bits_per_second)
    return DraftControlProblem(
        name=(
            f"alternating {slow_bits_per_second:g} and {fast_bits_per_second:g} bit/s,"
            f" L={min_draft}..{max_draft}"
        ),
        vocabulary_size=vocabulary_size,
        draft_seconds_per_token=draft_seconds_per_token,
        verify_seconds=verify_seconds,
        draft_lengths=(min_draft, max_draft),
        resolutions=np.array([resolution]),
        states=tuple(
            ChannelState(uplink_bits_per_second=rate, acceptance_rates=np.array([acceptance_rate]))
            for rate in (slow_bits_per_second, fast_bits_per_second)
        ),
        transition=TransitionMatrix(np.array([[0.0, 1.0], [1.0, 0.0]])),
    )
