"""Arithmetic of printed numbers: whether one follows from those beside it, their rounding
considered.
"""

from __future__ import annotations


def follows(
    printed: float, low: float, high: float | None = None, *, digits: int | None = None
) -> float:
    """Return the printed number if it follows, else the middle of what does.

    Parameters
    ----------
    printed
        As printed.
    low, high
        The interval that the rounded numbers beside it leave; `high` is `low` for none.
    digits
        Decimals that it is printed with; None: it is exact.

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
