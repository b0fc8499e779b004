"""Number of bits required to encode a distribution quantised to a lattice (paper 3, Eq. 5-6).

A point of the lattice with resolution l is a distribution o_1 / l, ..., o_V / l with integers o_i
>= 0 that sum to l.
"""

from __future__ import annotations

import math

from specopt.models.arguments import integer

_DIRECT = 2000
"""Up to this k, binomial coefficients are computed with integers, which takes negligible time."""

_LOGARITHM_ERROR = 1e-12
"""Assumed relative error of sums of logarithms of factorials, thousands of times the actual error.
If this error could change the result, integers are used instead.
"""


def distribution_bits(resolution: int, vocabulary_size: int) -> int:
    """Return the exact number of bits that encode a quantised distribution,
    b = ceil(log2 C(l + V - 1, V - 1)) (paper 3, Eq. 6).

    Parameters
    ----------
    resolution
        Resolution l >= 1.
    vocabulary_size
        Size V >= 1 of the vocabulary.

    Examples
    --------
    >>> distribution_bits(100, 50272)
    1038
    """
    integer("resolution", resolution, 1)
    integer("vocabulary_size", vocabulary_size, 1)
    return binomial_bits(resolution + vocabulary_size - 1, vocabulary_size - 1)


def binomial_bits(n: int, k: int) -> int:
    """Return the exact value of ceil(log2 C(n, k)) for 0 <= k <= n."""
    k = min(k, n - k)
    if k > _DIRECT:
        size = math.lgamma(n + 1.0)
        bits = (size - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)) / math.log(2.0)
        if math.ceil(bits - _LOGARITHM_ERROR * size) == math.ceil(bits + _LOGARITHM_ERROR * size):
            return math.ceil(bits)
    return (math.comb(n, k) - 1).bit_length()  # ceil(log2 m) is the bit length of m - 1
