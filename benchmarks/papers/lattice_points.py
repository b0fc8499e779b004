"""The points of the lattice of quantised distributions that are nearest to distributions (paper 3,
Eq. 5).

A point of the lattice of resolution l is a distribution o_1 / l, ..., o_V / l with integers o_i >=
0 that sum to l.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints, describe

SUM_TOLERANCE = 1e-5
"""The sum of a distribution may differ from 1 by this much. Single-precision softmax outputs are
then accepted, logits are rejected.
"""

LARGEST_RESOLUTION = 10**9
"""Up to this resolution, rounding errors cannot make the sum of the rounded-down counts exceed the
resolution.
"""


def nearest_counts(distributions: Any, resolution: int) -> Ints:
    """Return the counts o of the nearest lattice point to each distribution: nearest in L1, L2 and
    Linf at once.

    All counts are rounded down, then the missing units go to the largest remainders, and to the
    first of equal ones (Reznik's algorithm, reference 10 of paper 3). The average time is O(V) per
    distribution. A token of probability 0 keeps count 0.

    Parameters
    ----------
    distributions
        Probabilities, shape (..., V), that sum to 1 within 1e-5 along the last axis; they are
        scaled to sum to 1.
    resolution
        Resolution l, from 1 to 10^9.

    Returns
    -------
    counts
        Integers >= 0 that sum to l, of the shape of the distributions.

    Raises
    ------
    InvalidInput
        If a probability is negative or not a number, or if a sum is not 1.

    Examples
    --------
    >>> nearest_counts([0.5, 0.3, 0.2], 4).tolist()
    [2, 1, 1]
    """
    integer("resolution", resolution, 1)
    if resolution > LARGEST_RESOLUTION:
        raise InvalidInput(f"resolution: expected at most {LARGEST_RESOLUTION}, got {resolution}")
    found, sums = checked_distributions("distributions", distributions)
    rows = found.reshape(-1, found.shape[-1])
    counts = np.empty(rows.shape, np.int64)
    for row, total, out in zip(rows, sums.reshape(-1), counts, strict=True):
        out[:] = _largest_remainder(row * (resolution / total), resolution)
    return counts.reshape(found.shape)


def quantised(counts: Any) -> Floats:
    """Return the distributions o / l of counts o, shape (..., V), that sum to l along the last axis
    (Eq. 5).
    """
    whole = np.asarray(counts)
    shares: Floats = whole / whole.sum(axis=-1, keepdims=True)
    return shares


def checked_distributions(name: str, values: Any) -> tuple[Floats, Floats]:
    """Return distributions as an array of doubles, shape (..., V), and their sums, shape (...).

    Parameters
    ----------
    name
        Name that messages use for the values.
    values
        Values that numpy accepts as an array of numbers.

    Raises
    ------
    InvalidInput
        If they are not distributions; see `nearest_counts`.
    """
    try:
        found = np.asarray(values)
    except (TypeError, ValueError):
        found = np.empty(0, object)
    if found.dtype.kind not in "iuf" or found.ndim < 1 or found.shape[-1] < 1:
        raise InvalidInput(
            f"{name}: expected probabilities along the last axis of an array, got"
            f" {describe(values)}"
        )
    found = found.astype(np.float64, copy=False)
    sums = found.sum(axis=-1)
    # a NaN anywhere makes the sum NaN, and an infinite sum is not near 1
    wrong = ~(np.abs(sums - 1.0) <= SUM_TOLERANCE)
    if wrong.any():
        place = _place(name, np.unravel_index(int(np.argmax(wrong)), sums.shape))
        raise InvalidInput(
            f"{place}: expected probabilities that sum to 1, got the sum"
            f" {np.asarray(sums)[wrong][0]}"
        )
    if found.size and found.min() < 0.0:
        negative = found < 0.0
        place = _place(name, np.unravel_index(int(np.argmax(negative)), found.shape))
        raise InvalidInput(f"{place}: expected a probability >= 0, got {found[negative][0]}")
    return found, np.asarray(sums)


def _largest_remainder(scaled: Floats, resolution: int) -> Ints:
    """Return the counts of one distribution that has already been multiplied by the resolution."""
    floors = np.floor(scaled)
    remainders = scaled - floors
    counts: Ints = floors.astype(np.int64)
    # From 0 to V: the scaled values sum to the resolution up to a relative error far below
    # 1 / resolution.
    missing = resolution - int(counts.sum())
    if missing == 0:
        return counts
    cut = len(counts) - missing
    threshold = np.partition(remainders, cut)[cut]
    above = remainders > threshold
    counts[above] += 1
    ties = np.flatnonzero(remainders == threshold)[: missing - int(above.sum())]
    counts[ties] += 1
    return counts


def _place(name: str, index: tuple[Any, ...]) -> str:
    return name + "".join(f"[{int(i)}]" for i in index)
