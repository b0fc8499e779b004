"""Merging the best choices for all batch sizes into as few ranges as possible.

The number of ranges is minimal, subject to a maximum relative loss at every batch size. The method
is an exact dynamic program over batch sizes and choices. It minimises the number of ranges first
and the sum of losses second. For B batch sizes and C choices, it takes O(B C log C) time.
"""

from __future__ import annotations

import numpy as np

from specopt.models.arguments import number
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats

Range = tuple[int, int, int]
"""A range of batch sizes.

The entries are its first and last batch size (inclusive), and the index of its choice.
"""


def fewest_ranges(value: Floats, loss: float) -> list[Range]:
    """Divide the batch sizes 1..B into as few ranges as possible, each with a single choice.

    Parameters
    ----------
    value
        Positive goodput of each choice at batch sizes 1..B, with shape (B, C).
    loss
        Maximum relative loss. A choice may be used at a batch size if its goodput is at least (1 -
        loss) times the goodput of the best choice.

    Returns
    -------
    list of (low, high, choice)
        Ranges with the smallest sum of relative losses among all divisions into the minimum number
        of ranges. Ties go to the choice with the lower index.

    Raises
    ------
    InvalidInput
        If the loss is outside [0, 1), or if some value is not positive and finite.
    """
    loss = number("loss", loss, 0, below=1)
    if value.ndim != 2 or not value.size or not np.isfinite(value).all() or (value <= 0.0).any():
        raise InvalidInput("value: expected positive finite goodputs, one row per batch size")
    sizes, choices = value.shape
    lost = 1.0 - value / value.max(axis=1, keepdims=True)
    lost[lost > loss + 1e-12] = np.inf
    count = np.zeros(choices, np.int64)
    total = lost[0].copy()
    came_from = np.zeros((sizes, choices), np.int64)
    came_from[0] = -1
    for size in range(1, sizes):
        best = int(np.lexsort((total, count, np.isinf(total)))[0])
        stay = np.isfinite(total) & (
            (count < count[best] + 1) | ((count == count[best] + 1) & (total <= total[best]))
        )
        came_from[size] = np.where(stay, np.arange(choices), best)
        count = np.where(stay, count, count[best] + 1)
        total = np.where(stay, total, total[best]) + lost[size]
    choice = int(np.lexsort((total, count, np.isinf(total)))[0])
    ranges: list[Range] = []
    high = sizes
    for size in range(sizes - 1, -1, -1):
        previous = int(came_from[size, choice])
        if previous != choice:
            ranges.append((size + 1, high, choice))
            high, choice = size, previous
    return ranges[::-1]
