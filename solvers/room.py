"""What fits, as the methods decide it: the judge's tolerance turned into the largest amount that a
limit admits.

A constraint amount <= limit is violated if amount > limit + 1e-9 max(|limit|, |amount|) + readings.
All amounts are sums of terms >= 0. Methods and judge add them in other orders, so the last digits
may differ. Where terms are no whole numbers, a proof takes a room some digits larger, and the
construction of a plan one some digits smaller.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

TOLERANCE = 1e-9
"""Relative: the format's."""


def room(limit: Any, readings: Any = 0.0, digits: float = 0.0) -> Any:
    """Return the largest amount that a limit admits, up to the rounding of this very formula.

    Parameters
    ----------
    limit, readings
        Numbers or arrays: the limit, and the spacing of the clock readings that it is the
        difference of.
    digits
        How many times the last digit of the numbers that enter to add: some more than terms are
        added up, or less than nothing.
    """
    with np.errstate(over="ignore"):
        size = np.abs(limit) + readings
        found = np.maximum(
            limit + readings + TOLERANCE * np.abs(limit), (limit + readings) / (1.0 - TOLERANCE)
        )
        return np.minimum(found + digits * sys.float_info.epsilon * size, sys.float_info.max)


def whole_room(limit: float) -> float:
    """Return the largest amount that a limit admits, to the last digit of whole numbers, whose sums
    are exact.

    Other amounts lose some last digits, within which the judge might refuse them.
    """
    found = float(room(limit, digits=8.0))
    while found > limit + TOLERANCE * max(limit, found):
        found = math.nextafter(found, 0.0)
    return max(float(room(limit, digits=-8.0)), float(math.floor(found)))
