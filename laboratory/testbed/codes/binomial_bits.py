"""The number of bits that distinguish C(n, k) things: ceil(log2 C(n, k)), computed exactly.

Sums of logarithms in double precision have a bound on their error. If two integers are possible
within this bound, which happens if C(n, k) is close to a power of two, the result is computed with
integers. A complete row of Pascal's triangle therefore costs about as much as its logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from specopt.models.fields import Floats, Ints

_EPSILON = float(np.finfo(np.float64).eps)

_ULPS = 16.0
"""Error allowed for a computed log2 of a quotient of integers, in units of epsilon. The error of
libraries is at most 4.
"""

_BLOCK = 256
"""Number of terms that are added one after the other, before blocks are added. The error grows with
the sum of both numbers, not with their product.
"""


def row_bits(n: int, largest: int) -> Ints:
    """Return ceil(log2 C(n, k)) for k = 0..largest, exact, shape (largest + 1,), which is a row of
    Pascal's triangle.

    Parameters
    ----------
    n, largest
        Integers with 0 <= largest <= n.
    """
    half = min(largest, n // 2)
    k = np.arange(1, half + 1)
    bits = np.concatenate(
        [[0], _rounded_up(np.log2((n + 1.0 - k) / k), lambda index: _exact(n, index + 1))]
    )
    return bits[np.minimum(np.arange(largest + 1), n - np.arange(largest + 1))]


def _exact(n: int, k: int) -> int:
    return (math.comb(n, k) - 1).bit_length()  # ceil(log2 m) is the bit length of m - 1


def _rounded_up(terms: Floats, exact: Callable[[int], int]) -> Ints:
    """Return the running sums of terms >= 0, rounded up. `exact` is called if the error does not
    determine the result.
    """
    count = len(terms)
    if not count:
        return np.zeros(0, dtype=np.int64)
    blocks = -(-count // _BLOCK)
    padded = np.zeros(blocks * _BLOCK)
    padded[:count] = terms
    within = np.cumsum(padded.reshape(blocks, _BLOCK), axis=1)
    before = np.concatenate([[0.0], np.cumsum(within[:-1, -1])])
    sums = (within + before[:, None]).ravel()[:count]
    # an addition is off by half an epsilon of its result, all of which are at most the sum; a term
    # by _ULPS epsilons, of itself, or of 1 where its quotient is close to 1
    error = _EPSILON * ((_BLOCK + blocks + _ULPS) * sums + _ULPS * np.arange(1, count + 1))
    bits: Ints = np.ceil(sums - error).astype(np.int64)
    for index in np.flatnonzero(bits != np.ceil(sums + error)).tolist():
        bits[index] = exact(index)
    return bits
