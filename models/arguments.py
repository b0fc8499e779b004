"""Checks of single arguments: each returns the checked value, or says "name: expected ..., got ...".

NumPy's scalars count as Python's; a Boolean is no number, and neither is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe

T = TypeVar("T")


def integer(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return an integer from `low` to `high`; None: without an upper end.

    Examples
    --------
    >>> integer("tasks", np.int64(3), 1)
    3
    >>> integer("tasks", True, 1)
    Traceback (most recent call last):
    specopt.models.errors.InvalidInput: tasks: expected an integer >= 1, got True
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):  # type: ignore[operator]
        word = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
        raise InvalidInput(f"{name}: expected {word}, got {describe(value)}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def number(
    name: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    above: float | None = None,
    below: float | None = None,
) -> float:
    """Return a finite number from `low` to `high`; `above` and `below` are ends that do not belong.

    Examples
    --------
    >>> number("rate", 0.5, 0, below=1)
    0.5
    >>> number("rate", 1, 0, below=1)
    Traceback (most recent call last):
    specopt.models.errors.InvalidInput: rate: expected a number in [0, 1), got 1
    """
    least, most = low if above is None else above, high if below is None else below
    if is_number(value):
        try:
            found = float(value)  # type: ignore[arg-type]
        except OverflowError:  # an integer beyond floating point
            found = math.inf
        inside = (found > least if above is not None else found >= least) and (
            found < most if below is not None else found <= most
        )
        if inside and math.isfinite(found):
            return found
    raise InvalidInput(f"{name}: expected {_range(least, most, above is not None, below is not None)}, got "
                       f"{describe(value)}")  # fmt: skip


def positive(name: str, value: object) -> float:
    """Return a finite number > 0."""
    return number(name, value, above=0)


def interval(name: str, value: object, low: float = -math.inf, high: float = math.inf) -> tuple[float, float]:
    """Return two numbers in increasing order, from `low` to `high`."""
    ends = list(value) if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str) else []
    if len(ends) != 2:
        raise InvalidInput(f"{name}: expected two numbers, got {describe(value)}")
    first, last = number(f"{name}[0]", ends[0], low, high), number(f"{name}[1]", ends[1], low, high)
    if first > last:
        raise InvalidInput(f"{name}: expected two numbers in increasing order, got {describe(value)}")
    return first, last


def one_of(name: str, value: object, choices: Iterable[T]) -> T:
    """Return one of the choices."""
    known = tuple(choices)
    for choice in known:
        if type(choice) is type(value) and choice == value:
            return choice
    raise InvalidInput(f"{name}: expected one of {', '.join(map(str, known))}, got {describe(value)}")


def boolean(name: str, value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInput(f"{name}: expected true or false, got {describe(value)}")
    return bool(value)


def is_number(value: Any) -> bool:
    """Tell whether a value is a number, a Boolean being none; NaN and infinity are numbers here."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _range(low: float, high: float, open_below: bool, open_above: bool) -> str:
    if math.isinf(high):
        if math.isinf(low):
            return "a finite number"
        return f"a finite number {'>' if open_below else '>='} {low:g}"
    return f"a number in {'(' if open_below else '['}{low:g}, {high:g}{')' if open_above else ']'}"
