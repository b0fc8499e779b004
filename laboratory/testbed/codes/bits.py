"""Integers as texts of zeros and ones, and the checks shared by codes of counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe


def fixed_width(value: int, width: int) -> str:
    """Return an integer >= 0 in binary digits, the most significant first, or an empty text for
    width 0.
    """
    return format(value, f"0{width}b") if width else ""


def read_fixed_width(bits: str, start: int, width: int, limit: int) -> int:
    """Return the integer of `width` digits at a position of a text.

    Parameters
    ----------
    bits
        Text of zeros and ones.
    start
        Position of the most significant digit.
    width
        Number of digits.
    limit
        Exclusive upper limit of the integer.

    Raises
    ------
    InvalidInput
        If the text is too short or contains other characters, or if the integer is not below the
        limit.
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
        If they are not a one-dimensional array of integers >= 0 with a sum >= 1.
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
