"""Number of bits required to encode a distribution quantised to a lattice (paper 3, Eq. 5-6).

A point of the lattice with resolution l is a distribution o_1 / l, ..., o_V / l with integers o_i
>= 0 that sum to l.
"""

from __future__ import annotations

import math

from specopt.models.arguments import integer

_DIRECT = 2000
"""Largest k for which C(n, k) is always computed with exact integers. The computation takes
negligible time up to this k.
"""

_LOGARITHM_ERROR = 1e-12
"""Assumed relative error in sums of log-factorials. The actual error is thousands of times smaller.
If an error of this size could change the result, exact integers are used instead.
"""


def distribution_bits(resolution: int, vocabulary_size: int) -> int:
    """Return the exact number of bits that are required to encode a quantised distribution.

    The number is b = ceil(log2 C(l + V - 1, V - 1)) (paper 3, Eq. 6).

    Parameters
    ----------
    resolution
        Resolution l >= 1 of the lattice.
    vocabulary_size
        Vocabulary size V >= 1.

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
