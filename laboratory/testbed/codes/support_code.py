"""The support code: a lattice point of known resolution in few bits where few tokens have a count above 0.

A codeword tells, one after the other, how many tokens have one (k, in ceil(log2 min(l, V)) bits), which
(ceil(log2 C(V, k)) bits), and how the l units are divided among them (ceil(log2 C(l - 1, k - 1)) bits). All lengths
follow from l, V and k, so the code is prefix-free: codewords need no separator. It is exact. No codeword is longer than
that of Eq. 6 (paper 3) by more than ceil(log2 min(l, V)) + 1 bits, because C(V, k) C(l - 1, k - 1) counts only the
points of the lattice with k tokens; where k is far below l, it is far shorter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from specopt.models.codes.lattice import nearest_counts
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints, describe
from testbed.codes.binomial_bits import binomial_bits, row_bits
from testbed.codes.bits import checked_counts, fixed_width, read_fixed_width
from testbed.codes.subset_index import subset_at, subset_index


def support_code_bits(resolution: int, vocabulary_size: int) -> Ints:
    """Return the bits of a codeword by the number k of tokens with a count, for k = 1..min(l, V).

    O(min(l, V)).

    Parameters
    ----------
    resolution, vocabulary_size
        l, V >= 1.

    Examples
    --------
    >>> support_code_bits(4, 3).tolist()
    [4, 6, 4]
    """
    most = min(resolution, vocabulary_size)
    supports = row_bits(vocabulary_size, most)[1:]
    return _size_bits(resolution, vocabulary_size) + supports + row_bits(resolution - 1, most - 1)


def counts_bits(counts: Any) -> Ints:
    """Return the bits of the codewords of a batch of counts, without making them.

    Parameters
    ----------
    counts
        Integers >= 0, shape (..., V), of one sum l >= 1 along the last axis.

    Raises
    ------
    InvalidInput
        If the sums differ or a count is negative.

    Examples
    --------
    >>> counts_bits([[4, 0, 0], [2, 1, 1]]).tolist()
    [4, 4]
    """
    values = np.asarray(counts)
    if values.ndim < 1 or values.dtype.kind not in "iu" or not values.size or values.min() < 0:
        raise InvalidInput(f"counts: expected integers >= 0 along the last axis of an array, got {describe(counts)}")
    sums = values.sum(axis=-1)
    resolution = int(sums.flat[0])
    if resolution < 1 or (sums != resolution).any():
        raise InvalidInput(f"counts: expected one sum >= 1, got {int(sums.min())} to {int(sums.max())}")
    table = support_code_bits(resolution, values.shape[-1])
    bits: Ints = table[np.count_nonzero(values, axis=-1) - 1]
    return bits


def expected_bits(distributions: Any, resolutions: Sequence[int]) -> Floats:
    """Return the mean bits of the codewords of a batch of distributions, quantised at each resolution, shape (R,).

    This is what a state of draft control asks for as `distribution_bits`.

    Parameters
    ----------
    distributions
        Shape (..., V): see `specopt.models.codes.lattice.nearest_counts`.
    resolutions
        l of each lattice.

    Raises
    ------
    InvalidInput
        If there is no distribution, or one is none, or a resolution is out of range.

    Examples
    --------
    >>> expected_bits([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25]], [1, 4]).tolist()
    [2.0, 4.0]
    """
    return np.array([counts_bits(nearest_counts(distributions, l)).mean() for l in resolutions])  # noqa: E741


def encode_support(counts: Any) -> str:
    """Return the codeword of counts, as a text of zeros and ones.

    O(k^2 log V) operations on bits, k the number of tokens with a count: a millisecond for 100 tokens, tens of them for
    1000. Decoding takes a few times as long.

    Parameters
    ----------
    counts
        Integers >= 0, not all 0, shape (V,); their sum is the resolution l.

    Raises
    ------
    InvalidInput
        If they are not.

    Examples
    --------
    >>> encode_support([0, 4, 0])
    '0001'
    """
    values = checked_counts(counts)
    resolution, tokens = sum(values), len(values)
    support = [token for token, count in enumerate(values) if count]
    size = len(support)
    # ends of all parts but the last: a subset of 1..l-1
    ends = list(itertools.accumulate(values[token] for token in support))[:-1]
    return (
        fixed_width(size - 1, _size_bits(resolution, tokens))
        + fixed_width(subset_index(support), binomial_bits(tokens, size))
        + fixed_width(subset_index([end - 1 for end in ends]), binomial_bits(resolution - 1, size - 1))
    )


def decode_support(bits: str, resolution: int, vocabulary_size: int) -> tuple[list[int], int]:
    """Return the counts at the start of a text of zeros and ones, and the length of their codeword.

    Parameters
    ----------
    bits
        Starts with a codeword; anything may follow.
    resolution, vocabulary_size
        l and V of the codeword.

    Raises
    ------
    InvalidInput
        If the text starts with no codeword.

    Examples
    --------
    >>> decode_support("0001" + "0110", 4, 3)
    ([0, 4, 0], 4)
    """
    width = _size_bits(resolution, vocabulary_size)
    size = read_fixed_width(bits, 0, width, min(resolution, vocabulary_size)) + 1
    place, width = width, binomial_bits(vocabulary_size, size)
    which = read_fixed_width(bits, place, width, math.comb(vocabulary_size, size))
    place, width = place + width, binomial_bits(resolution - 1, size - 1)
    how = read_fixed_width(bits, place, width, math.comb(resolution - 1, size - 1))
    ends = [0, *(end + 1 for end in subset_at(how, size - 1, resolution - 1)), resolution]
    counts = [0] * vocabulary_size
    for token, (start, end) in zip(subset_at(which, size, vocabulary_size), itertools.pairwise(ends), strict=True):
        counts[token] = end - start
    return counts, place + width


def _size_bits(resolution: int, vocabulary_size: int) -> int:
    return (min(resolution, vocabulary_size) - 1).bit_length()
