"""The random generator of all kernels: SplitMix64, counted from any place on.

A stream is a 64-bit number that goes up by `GOLDEN` from draw to draw, and `mixed` turns every
place into a random number. So any place can be had without those before it, and ``mixed(key +
number * GOLDEN)`` starts a separate stream for each number. Two runs with one key meet the same
draws, whatever comes between them.
"""

import math

import numpy as np

from specopt.solvers.kernels.kernel import helper, inlined

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""From one place of a stream to the next."""


@inlined
def mixed(place):
    """Return the 64 random bits of a place: the output function of SplitMix64."""
    z = (place ^ (place >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def uniform(place):
    """Return the number in [0, 1) of a place."""
    return np.float64(mixed(place) >> np.uint64(11)) * 2.0**-53


@inlined
def draw(streams, j):
    """Return the next number in [0, 1) of stream j."""
    streams[j] += GOLDEN
    return uniform(streams[j])


@helper
def draw_below(streams, j, n):
    """Return the next integer in 0..n-1 of stream j."""
    return np.int64(draw(streams, j) * n)


@helper
def draw_exponential(streams, j, mean):
    """Return the next exponential number of stream j."""
    return -mean * math.log1p(-draw(streams, j))


@helper
def draw_normal(streams, j):
    """Return a standard normal number from the next two draws of stream j."""
    radius = math.sqrt(-2.0 * math.log1p(-draw(streams, j)))
    return radius * math.cos(2.0 * math.pi * draw(streams, j))


@helper
def pick(cumulative, draw):
    """Return the first entry whose cumulative weight exceeds the draw's part of the whole: none of
    weight 0.
    """
    low, high = 0, len(cumulative) - 1
    level = draw * cumulative[high]
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > level:
            high = middle
        else:
            low = middle + 1
    while low > 0 and cumulative[low] == cumulative[low - 1]:
        low -= 1
    return low
