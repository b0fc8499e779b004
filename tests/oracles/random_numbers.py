"""The random numbers of the simulators' kernels in plain Python: SplitMix64; imports nothing of
ours.
"""

from __future__ import annotations

import numpy as np

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def key_of(seed: int) -> int:
    """The key of the random numbers that belongs to a seed."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])


def mixed(z: int) -> int:
    """The output function of SplitMix64."""
    z &= MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def uniform(z: int) -> float:
    """A number in [0, 1)."""
    return (mixed(z) >> 11) * 2.0**-53
