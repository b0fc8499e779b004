"""Arithmetic of printed numbers: whether a number follows from others, apart from rounding."""

from __future__ import annotations


def follows(
    printed: float, low: float, high: float | None = None, *, digits: int | None = None
) -> float:
    """Return the printed number if it follows from others, else the middle of the possible values.

    Parameters
    ----------
    printed
        Printed number.
    low
        Lower end of the interval that the other rounded numbers allow.
    high
        Upper end of the interval; None means `low`.
    digits
        Printed decimals; None means an exact number.

    Examples
    --------
    >>> follows(33.3, 100 / 3, digits=1)
    33.3
    >>> round(follows(44.7, 37.9, 43.0, digits=1), 2)
    40.45
    """
    high = low if high is None else high
    half = 0.0 if digits is None else 0.5 * 10.0**-digits
    slack = half * (1.0 + 1e-9) + 1e-12 * abs(printed)
    return printed if low - slack <= printed <= high + slack else 0.5 * (low + high)
