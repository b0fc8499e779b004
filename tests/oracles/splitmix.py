"""The random numbers of simulations: SplitMix64, written again."""

from __future__ import annotations

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mixed(z: int) -> int:
    """The output function of SplitMix64."""
    z &= MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def uniform(z: int) -> float:
    """A number in [0, 1)."""
    return (mixed(z) >> 11) * 2.0**-53
