"""Field values for acceptance rates by position and for durations by draft length. A single number
may be specified if all values are equal.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from specopt.models.arguments import is_number
from specopt.models.errors import InvalidInput
from specopt.models.fields import Custom, Floats, describe


@dataclass(frozen=True, eq=False)
class Rates(Custom):
    """A list of probabilities in (0, 1). The JSON form is a list, or a single number if all values
    are equal.

    Attributes
    ----------
    closed
        Whether the values 0 and 1 are allowed.
    below
        Exclusive upper limit on the values, except that the value 1 is allowed if `closed`.

    Parameters
    ----------
    values
        Probabilities, shape (K,).
    """

    closed: ClassVar[bool] = False
    below: ClassVar[float] = 1.0

    values: Floats

    @classmethod
    def parse(cls, data: object, where: str) -> float | Self:  # type: ignore[override]  # a number remains a number
        """Build the object from a list or an array. A single number is checked and returned as a
        number.
        """
        given = data.tolist() if isinstance(data, (np.ndarray, np.generic)) else data
        if not isinstance(given, (list, tuple)):
            return cls._rate(given, where)
        if not given:
            raise InvalidInput(f"{where}: expected at least one number, got none")
        values = np.array(given if set(map(type, given)) == {float} else 0.0)
        if not ((values > 0.0) & (values < 1.0)).all():
            values = np.array(
                [cls._rate(item, f"{where}[{index}]") for index, item in enumerate(given)]
            )
        return cls(values)

    def __add__(self, amount: float) -> Self:
        """Return a copy in which `amount` has been added to every value."""
        return type(self)(self.values + amount)

    def dump(self) -> Any:
        """Return the values as a list, or as a number if there is a single one for all."""
        return self.values.tolist()

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema for the values, which accepts a number or a list of numbers."""
        ends = ("minimum", "maximum") if cls.closed else ("exclusiveMinimum", "exclusiveMaximum")
        number = {"type": "number", ends[0]: 0} | ({ends[1]: 1} if cls.below == 1.0 else {})
        return {"anyOf": [number, {"type": "array", "items": number, "minItems": 1}]}

    @classmethod
    def _rate(cls, value: object, where: str) -> float:
        if is_number(value) and (0.0 < value < cls.below or (cls.closed and value in (0, 1))):
            return float(value)
        word, end = (">= 0", " and <= 1") if cls.closed else ("> 0", " and < 1")
        raise InvalidInput(
            f"{where}: expected a number {word}{end * (cls.below == 1.0)}, got {describe(value)}"
        )


class ClosedRates(Rates):
    """Probabilities in [0, 1]. A single number becomes an array of shape ()."""

    closed = True

    @classmethod
    def parse(cls, data: object, where: str) -> Self:
        """Build the probabilities from a number, a list or an array."""
        found = super().parse(data, where)
        return found if isinstance(found, cls) else cls(np.array(found))


@dataclass(frozen=True, eq=False)
class SecondsByLength(Rates):
    """Durations in seconds for 0, 1, 2, ... draft tokens. The JSON form is a list, or a single
    number if all durations are equal.
    """

    closed: ClassVar[bool] = True
    below: ClassVar[float] = sys.float_info.max

    def __rmul__(self, factor: float) -> Self:
        """Return a copy in which every duration is multiplied by `factor`."""
        return type(self)(factor * self.values)


def by_length(seconds: float | SecondsByLength, longest: int, where: str) -> Floats:
    """Return an array of durations for 0 to `longest` draft tokens, in seconds.

    A single number is repeated for every length. Error messages refer to the field as `where`.

    Raises
    ------
    InvalidInput
        If a list does not have `longest` + 1 entries.
    """
    values = seconds.values if isinstance(seconds, Rates) else np.array(seconds)
    if values.ndim and len(values) != longest + 1:
        raise InvalidInput(
            f"{where}: expected one number, or {longest + 1} numbers for drafts of 0 to {longest}"
            f" tokens, got {len(values)}"
        )
    return np.broadcast_to(values, longest + 1)
