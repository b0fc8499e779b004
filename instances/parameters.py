"""Checks that families of problems share: a parameter outside its domain is refused by name."""

from __future__ import annotations

import math

from specopt.models.errors import InvalidInput


def whole(name: str, value: object, least: int) -> int:
    """Return a parameter that must be an integer of at least some size.

    Raises
    ------
    InvalidInput
        If it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInput(f"{name}: expected an integer >= {least}, got {value!r}")
    return value


def number(name: str, value: float, least: float = -math.inf, most: float = math.inf) -> float:
    """Return a parameter that must be a finite number between two limits, both allowed.

    Raises
    ------
    InvalidInput
        If it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InvalidInput(f"{name}: expected a number from {least:g} to {most:g}, got {value!r}")
    if not math.isfinite(value):
        raise InvalidInput(f"{name}: expected a finite number, got {value!r}")
    return float(value)


def positive(name: str, value: float) -> float:
    """Return a parameter that must be a finite number above zero.

    Raises
    ------
    InvalidInput
        If it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InvalidInput(f"{name}: expected a finite number > 0, got {value!r}")
    return float(value)
