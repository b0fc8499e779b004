"""SplitMix64, the random number generator of all kernels, which can start at any place.

A stream is a 64-bit number that increases by `GOLDEN` with every draw. Each value of this number is
a place, and `mixed` maps every place to a random number. A draw therefore does not depend on
earlier draws, and ``mixed(key + number * GOLDEN)`` starts a separate stream for each number. Two
runs with the same key use the same draws, regardless of other draws between them.
"""

import math

import numpy as np

from specopt.solvers.kernels.kernel import helper, inlined

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Distance between consecutive places of a stream."""


@inlined
def mixed(place):
    """Return the 64 random bits of a place, using the output function of SplitMix64."""
    z = (place ^ (place >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def uniform(place):
    """Return the uniform random number in [0, 1) that belongs to a place."""
    return np.float64(mixed(place) >> np.uint64(11)) * 2.0**-53


@inlined
def draw(streams, j):
    """Return the next uniform random number in [0, 1) of stream j."""
    streams[j] += GOLDEN
    return uniform(streams[j])


@helper
def draw_below(streams, j, n):
    """Return the next uniform random integer in 0..n-1 of stream j."""
    return np.int64(draw(streams, j) * n)


@helper
def draw_exponential(streams, j, mean):
    """Return the next exponentially distributed number of stream j, with the given mean."""
    return -mean * math.log1p(-draw(streams, j))


@helper
def draw_normal(streams, j):
    """Return a standard normal number from the next two draws of stream j."""
    radius = math.sqrt(-2.0 * math.log1p(-draw(streams, j)))
    return radius * math.cos(2.0 * math.pi * draw(streams, j))


@helper
def pick(cumulative, draw):
    """Return the first index whose cumulative weight exceeds `draw` times the total weight.

    Entries of weight 0 are never chosen.
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
