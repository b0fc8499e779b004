"""Tables of integers as fields: what samples of lengths and transitions of an automaton have in
common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import Custom, Ints, describe, without_numpy


@dataclass(frozen=True, eq=False)
class IntegerTable(Custom):
    """Rows of integers, all of one length; JSON: the list of rows.

    Attributes
    ----------
    size, fewest_rows, most_rows
        How many rows there may be, in words and in numbers.
    entry, least, most
        What an entry may be.

    Parameters
    ----------
    rows
        The table.
    """

    size: ClassVar[str]
    fewest_rows: ClassVar[int] = 0
    most_rows: ClassVar[float] = math.inf
    entry: ClassVar[str]
    least: ClassVar[int]
    most: ClassVar[int]

    rows: Ints

    @classmethod
    def parse(cls, data: object, where: str) -> Self:
        """Build it from a list of rows of one length, or from an array."""
        given = without_numpy(data)
        if (
            not isinstance(given, (list, tuple))
            or not cls.fewest_rows <= len(given) <= cls.most_rows
        ):
            raise InvalidInput(f"{where}: expected a list of {cls.size}, got {describe(data)}")
        for index, row in enumerate(given):
            if not isinstance(row, (list, tuple)) or not row or len(row) != len(given[0]):
                raise InvalidInput(
                    f"{where}[{index}]: expected a row as long as the first, got {describe(row)}"
                )
            for place, value in enumerate(row):
                if type(value) is not int or not cls.least <= value <= cls.most:
                    raise InvalidInput(
                        f"{where}[{index}][{place}]: expected {cls.entry}, got {describe(value)}"
                    )
        return cls(np.array(given, np.int64).reshape(len(given), -1 if given else 0))

    def __len__(self) -> int:
        return len(self.rows)

    def dump(self) -> list[list[int]]:
        """Return the list of rows."""
        rows: list[list[int]] = self.rows.tolist()
        return rows
