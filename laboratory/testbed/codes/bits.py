"""Integers as texts of zeros and ones, and the checks that codes of counts share."""

from __future__ import annotations

from typing import Any

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe


def fixed_width(value: int, width: int) -> str:
    """Return an integer >= 0 in binary digits, the highest first; none at all for width 0."""
    return format(value, f"0{width}b") if width else ""


def read_fixed_width(bits: str, start: int, width: int, limit: int) -> int:
    """Return the integer of `width` digits at a place of a text.

    Parameters
    ----------
    bits
        Zeros and ones.
    start
        Place of the highest digit.
    width
        Number of digits.
    limit
        The integer is below it.

    Raises
    ------
    InvalidInput
        If the text is too short or other than zeros and ones, or the integer reaches the limit.
    """
    digits = bits[start : start + width]
    if len(digits) < width or digits.strip("01"):
        raise InvalidInput(
            f"bits: expected {width} zeros and ones from place {start}, got {describe(digits)}"
        )
    value = int(digits, 2) if width else 0
    if value >= limit:
        raise InvalidInput(f"bits: expected a codeword at place {start}, got {describe(digits)}")
    return value


def checked_counts(counts: Any) -> list[int]:
    """Return counts as a list of integers.

    Raises
    ------
    InvalidInput
        If they are not integers >= 0 with a sum >= 1, in one row.
    """
    try:
        values = np.asarray(counts)
    except (TypeError, ValueError):
        values = np.empty(0)
    if (
        values.ndim != 1
        or values.dtype.kind not in "iu"
        or values.min(initial=0) < 0
        or values.sum() < 1
    ):
        raise InvalidInput(
            f"counts: expected integers >= 0, not all of them 0, got {describe(counts)}"
        )
    row: list[int] = values.tolist()
    return row
