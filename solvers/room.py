"""The largest amount that satisfies a constraint, including the constraint's tolerance.

A constraint amount <= limit counts as violated if amount > limit + 1e-9 max(|limit|, |amount|) +
readings. The term readings is the spacing of clock readings if the limit is a difference of such
readings, and 0 otherwise. All amounts are sums of nonnegative terms. A method and the evaluation of
a plan may add the terms in different orders, so the two sums may differ by rounding errors. If the
terms are not integers, proofs therefore use a slightly larger amount, and the construction of plans
uses a slightly smaller amount.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

TOLERANCE = 1e-9
"""Relative tolerance of constraints, as defined by the file format."""


def room(limit: Any, readings: Any = 0.0, digits: Any = 0.0) -> Any:
    """Return the largest amount that is accepted under a limit, up to rounding errors in this
    computation.

    Parameters
    ----------
    limit
        Limit on the amount, as a number or an array.
    readings
        Spacing of the clock readings, if the limit is a difference of such readings.
    digits
        Correction for rounding errors, in multiples of machine epsilon times the limit. If the
        result must not be too small, the correction should exceed the number of terms in the sum.
        If the result must not be too large, the correction should be negative.
    """
    with np.errstate(over="ignore"):
        size = np.abs(limit) + readings
        found = np.maximum(
            limit + readings + TOLERANCE * np.abs(limit), (limit + readings) / (1.0 - TOLERANCE)
        )
        return np.minimum(found + digits * sys.float_info.epsilon * size, sys.float_info.max)


def whole_room(limit: float) -> float:
    """Return the largest amount that is accepted under a limit. The result is exact if all amounts
    are integers.

    For other amounts, the result is smaller by a few rounding errors, so that the evaluation of a
    plan finds no violation.
    """
    found = float(room(limit, digits=8.0))
    while found > limit + TOLERANCE * max(limit, found):
        found = math.nextafter(found, 0.0)
    return max(float(room(limit, digits=-8.0)), float(math.floor(found)))
