"""Approximations of values on a grid by functions that do not decrease along any axis.

The module computes the least-squares fit, and the closest nondecreasing functions below and above
the values.
"""

from __future__ import annotations

import numpy as np

from specopt.models.fields import Floats

MAX_ROUNDS = 300
CLOSE = 1e-9


def isotonic(values: Floats) -> Floats:
    """Return the least-squares fit to the values that does not decrease along any axis.

    The fit is computed by Dykstra's alternating projections, in which each projection is an
    isotonic regression along one axis (Dykstra and Robertson, 1982).
    """
    if (majorant(values) == values).all():
        return values
    from scipy.optimize import isotonic_regression

    found = values.astype(np.float64)
    corrections = [np.zeros(values.shape) for _ in range(values.ndim)]
    for _ in range(MAX_ROUNDS):
        before = found
        for axis, correction in enumerate(corrections):
            if values.shape[axis] == 1:
                continue
            target = found + correction
            found = np.apply_along_axis(lambda line: isotonic_regression(line).x, axis, target)
            corrections[axis] = target - found
        if np.abs(found - before).max() <= CLOSE * max(1.0, float(np.abs(values).max())):
            break
    return majorant(found)  # removes decreases that are due to rounding


def majorant(values: Floats) -> Floats:
    """Return the smallest array that does not decrease along any axis and is at least `values`
    everywhere.
    """
    for axis in range(values.ndim):
        values = np.maximum.accumulate(values, axis=axis)
    return values


def minorant(values: Floats) -> Floats:
    """Return the largest array that does not decrease along any axis and is at most `values`
    everywhere.
    """
    return -np.flip(majorant(np.flip(-values)))
