"""The support code as text. `testbed.codes.support_lengths` contains its lengths.

A codeword contains the number of tokens with a positive count, these tokens, and the division of
the units among them.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from specopt.models.codes.lattice import binomial_bits
from specopt.models.fields import Ints
from testbed.codes.binomial_bits import row_bits
from testbed.codes.bits import checked_counts, fixed_width, read_fixed_width
from testbed.codes.subset_index import subset_at, subset_index


def support_code_bits(resolution: int, vocabulary_size: int) -> Ints:
    """Return the bits of a codeword for k = 1..min(l, V) tokens with positive counts.

    The running time is O(min(l, V)).

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


def encode_support(counts: Any) -> str:
    """Return the codeword of counts, as a text of zeros and ones.

    O(k^2 log V) operations on bits, k the number of tokens with a count: a millisecond for 100
    tokens, tens of them for
    1000. Decoding takes a few times as long.

    Parameters
    ----------
    counts
        Integers >= 0, not all 0, shape (V,); their sum is the resolution l.

    Raises
    ------
    InvalidInput
        If counts are not such integers.

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
        + fixed_width(
            subset_index([end - 1 for end in ends]), binomial_bits(resolution - 1, size - 1)
        )
    )


def decode_support(bits: str, resolution: int, vocabulary_size: int) -> tuple[list[int], int]:
    """Return the counts at the start of a text of zeros and ones, and the length of their codeword.

    Parameters
    ----------
    bits
        Text that starts with a codeword. Any other text may follow.
    resolution, vocabulary_size
        Parameters l and V of the codeword.

    Raises
    ------
    InvalidInput
        If the text does not start with a codeword.

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
    for token, (start, end) in zip(
        subset_at(which, size, vocabulary_size), itertools.pairwise(ends), strict=True
    ):
        counts[token] = end - start
    return counts, place + width


def _size_bits(resolution: int, vocabulary_size: int) -> int:
    return (min(resolution, vocabulary_size) - 1).bit_length()
