"""The code of Eq. 6 (paper 3): a lattice point of known resolution as an index of ceil(log2 C(l + V
- 1, V - 1)) bits.

The counts are l units divided among V tokens. Written in order, the units and the V - 1 bars
between tokens occupy l + V - 1 positions. The index is that of the subset of positions of the units
or of the bars, whichever are fewer.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from specopt.models.codes.lattice import distribution_bits
from testbed.codes.bits import checked_counts, fixed_width, read_fixed_width
from testbed.codes.subset_index import subset_at, subset_index


def encode_lattice(counts: Any) -> str:
    """Return the codeword of counts as a text of zeros and ones.

    Its length is `distribution_bits` of the resolution, which is the sum of the counts, for all
    counts. The running time is O(m^2 log V), where m is the smaller of l and V - 1, or about a
    millisecond at l = 100 and V = 50272.

    Parameters
    ----------
    counts
        Integers >= 0, not all 0, shape (V,).

    Raises
    ------
    InvalidInput
        If counts are not such integers.

    Examples
    --------
    >>> [encode_lattice(counts) for counts in ([2, 0], [1, 1], [0, 2])]
    ['10', '01', '00']
    """
    values = checked_counts(counts)
    resolution, tokens = sum(values), len(values)
    if resolution <= tokens - 1:
        units = (token for token, count in enumerate(values) for _ in range(count))
        places = [token + unit for unit, token in enumerate(units)]
    else:
        places = [units + bar for bar, units in enumerate(itertools.accumulate(values[:-1]))]
    return fixed_width(subset_index(places), distribution_bits(resolution, tokens))


def decode_lattice(bits: str, resolution: int, vocabulary_size: int) -> tuple[list[int], int]:
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
    """
    length = distribution_bits(resolution, vocabulary_size)
    bars = vocabulary_size - 1
    index = read_fixed_width(bits, 0, length, math.comb(resolution + bars, bars))
    counts = [0] * vocabulary_size
    if resolution <= bars:
        for unit, place in enumerate(subset_at(index, resolution, resolution + bars)):
            counts[place - unit] += 1
    else:
        ends = [place - bar for bar, place in enumerate(subset_at(index, bars, resolution + bars))]
        counts = [end - start for start, end in itertools.pairwise([0, *ends, resolution])]
    return counts, length
