"""A link that alternates between slow and fast: the greedy reward of paper 3 fails here."""

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
    """An uplink that alternates between slow and fast at every iteration (paper 3): a chain of
    period 2.

    Maximising the tokens per second of each iteration separately (Eq. 13) is far from optimal in
    the long run here. Drafts pay on the slow link, but less than the next iteration on the fast
    link.

    Parameters
    ----------
    slow_bits_per_second
        Uplink rate of the slow state; the downlink is free.
    fast_bits_per_second
        Uplink rate of the fast state.
    acceptance_rate
        Acceptance rate in both states.
    draft_seconds_per_token
        Drafting time per token, T_SLM.
    verify_seconds
        Verification time, T_LLM.
    vocabulary_size
        Size V of the vocabulary.
    resolution
        The only lattice resolution.
    min_draft
        Minimum draft length.
    max_draft
        Maximum draft length.
    seed
        Not used; the instance is deterministic.
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
