"""SplitMix64, the random number generator of all kernels, which allows random access to its
streams.

The state of a stream is a 64-bit number that increases by `GOLDEN` with every draw, and `mixed`
maps every state to 64 random bits. A draw therefore does not depend on earlier draws, and
``mixed(key + number * GOLDEN)`` is the initial state of a separate stream for each number. Two runs
with the same key use the same random numbers for the same purposes, even if one of them draws
additional numbers from other streams.
"""

import math

import numpy as np

from specopt.solvers.kernels.kernel import helper, inlined

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Difference between consecutive states of a stream."""


@inlined
def mixed(place):
    """Map the state of a stream to 64 random bits, using the output function of SplitMix64."""
    z = (place ^ (place >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def uniform(place):
    """Map the state of a stream to a uniform random number in [0, 1)."""
    return np.float64(mixed(place) >> np.uint64(11)) * 2.0**-53


@inlined
def draw(streams, j):
    """Draw the next uniform random number in [0, 1) from stream j."""
    streams[j] += GOLDEN
    return uniform(streams[j])


@helper
def draw_below(streams, j, n):
    """Draw the next uniform random integer in 0..n-1 from stream j."""
    return np.int64(draw(streams, j) * n)


@helper
def draw_exponential(streams, j, mean):
    """Draw the next exponentially distributed random number with mean `mean` from stream j."""
    return -mean * math.log1p(-draw(streams, j))


@helper
def draw_normal(streams, j):
    """Draw a standard normal random number, using the next two uniform numbers of stream j."""
    radius = math.sqrt(-2.0 * math.log1p(-draw(streams, j)))
    return radius * math.cos(2.0 * math.pi * draw(streams, j))


@helper
def pick(cumulative, draw):
    """Choose an index at random with probability proportional to its weight, where `draw` is a
    uniform random number in [0, 1).

    Return the first index whose cumulative weight exceeds `draw` times the total weight. Entries
    with weight 0 are never chosen.
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
