"""Base class for field values that are tables of integers, such as samples of output lengths or the
transitions of an automaton.
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
    """A table of integers whose rows all have the same length. The JSON form is a list of rows.

    Attributes
    ----------
    size
        Phrase that describes the allowed number of rows, used in error messages.
    min_rows
        Minimum number of rows.
    max_rows
        Maximum number of rows.
    entry
        Phrase that describes an allowed entry, used in error messages.
    min_entry
        Minimum value of an entry.
    max_entry
        Maximum value of an entry.

    Parameters
    ----------
    rows
        Rows of the table, as a two-dimensional array.
    """

    size: ClassVar[str]
    min_rows: ClassVar[int] = 0
    max_rows: ClassVar[float] = math.inf
    entry: ClassVar[str]
    min_entry: ClassVar[int]
    max_entry: ClassVar[int]

    rows: Ints

    @classmethod
    def parse(cls, data: object, where: str) -> Self:
        """Build the table from an array or a list of rows. Raise `InvalidInput` if the rows have
        different lengths, or if the number of rows or an entry is not allowed.
        """
        given = without_numpy(data)
        if not isinstance(given, (list, tuple)) or not cls.min_rows <= len(given) <= cls.max_rows:
            raise InvalidInput(f"{where}: expected a list of {cls.size}, got {describe(data)}")
        for index, row in enumerate(given):
            if not isinstance(row, (list, tuple)) or not row or len(row) != len(given[0]):
                raise InvalidInput(
                    f"{where}[{index}]: expected a row of the same length as the first, got"
                    f" {describe(row)}"
                )
            for place, value in enumerate(row):
                if type(value) is not int or not cls.min_entry <= value <= cls.max_entry:
                    raise InvalidInput(
                        f"{where}[{index}][{place}]: expected {cls.entry}, got {describe(value)}"
                    )
        return cls(np.array(given, np.int64).reshape(len(given), -1 if given else 0))

    def __len__(self) -> int:
        return len(self.rows)

    def dump(self) -> list[list[int]]:
        """Return the table as a list of rows."""
        rows: list[list[int]] = self.rows.tolist()
        return rows
