"""Subsets of 0..n-1 as integers below C(n, k), and back: the combinatorial number system.

The subset {c_1 < ... < c_k} has the index C(c_1, 1) + ... + C(c_k, k). Integers grow to log2 C(n,
k) bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def subset_index(members: Sequence[int]) -> int:
    """Return the index of a subset among all subsets of its size.

    This takes O(k) operations on integers with the number of bits of the index, and computes a new
    coefficient at each gap.

    Parameters
    ----------
    members
        Distinct integers >= 0, ascending.

    Examples
    --------
    >>> [subset_index(pair) for pair in ([0, 1], [0, 2], [1, 2], [0, 3])]
    [0, 1, 2, 3]
    """
    index = coefficient = 0
    before = -1
    for size, member in enumerate(members, start=1):
        is_next = (
            coefficient and member == before + 1
        )  # C(c + 1, k + 1) = C(c, k) (c + 1) / (k + 1)
        coefficient = coefficient * member // size if is_next else math.comb(member, size)
        index += coefficient
        before = member
    return index


def subset_at(index: int, size: int, universe: int) -> list[int]:
    """Return the subset with a given index, in increasing order.

    Parameters
    ----------
    index
        Integer from 0 to C(universe, size) - 1.
    size
        Number k of members, from 0 to `universe`.
    universe
        Number n. Members are below n.

    Examples
    --------
    >>> [subset_at(index, 2, 4) for index in range(4)]
    [[0, 1], [0, 2], [1, 2], [0, 3]]
    """
    members: list[int] = []
    below, coefficient = universe, 0
    while size:
        run = (
            coefficient * (size + 1) // below if members else 0
        )  # C(below - 1, size), if C(below, size + 1) is known
        if members and run <= index:
            below, coefficient = below - 1, run  # consecutive members need no search
        else:
            below, coefficient = _largest_below(below, index, size)
        members.append(below)
        index -= coefficient
        size -= 1
    return members[::-1]


def _largest_below(below: int, index: int, size: int) -> tuple[int, int]:
    """Return the largest c < below with C(c, size) <= index, and C(c, size)."""
    low, high, coefficient = (
        size - 1,
        below,
        0,
    )  # C(low, size) <= index < C(high, size), or high = below
    probe, step = _root(index, size), 1
    while high - low > 1:
        probe = min(max(probe, low + 1), high - 1)
        value = math.comb(probe, size)
        # away from the first probe in doubling steps: it is mostly right or next to it
        if value <= index:
            low, coefficient = probe, value
            probe = probe + step if high == below else (low + high) // 2
        else:
            high = probe
            probe = probe - step if low == size - 1 else (low + high) // 2
        step *= 2
    return low, coefficient


def _root(index: int, size: int) -> int:
    """Return an approximation of the c with C(c, size) = index, from C(c, k) = (c - (k - 1) / 2)^k
    / k!, which is good for c >> k.
    """
    if index == 0:
        return 0
    shift = max(index.bit_length() - 60, 0)
    logarithm = math.log(index >> shift) + shift * math.log(2.0) + math.lgamma(size + 1.0)
    return int(math.exp(logarithm / size) + 0.5 * (size - 1))
