"""Samples of token counts: a field that holds equally likely lists, one count for each of several in every list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, Custom, Ints, describe


@dataclass(frozen=True, eq=False)
class TokenSamples(Custom):
    """Token counts drawn several times; JSON: a list of rows.

    Parameters
    ----------
    rows
        Shape (S, K), each from 1 to 10,000,000.
    """

    rows: Ints

    @classmethod
    def parse(cls, data: object, where: str) -> Self:
        """Build them from a list of rows of one length, or from an array."""
        given = data.tolist() if isinstance(data, np.ndarray) else data
        if not isinstance(given, (list, tuple)) or not given:
            raise InvalidInput(f"{where}: expected a list of at least one row, got {describe(data)}")
        for index, row in enumerate(given):
            if not isinstance(row, (list, tuple)) or not row or len(row) != len(given[0]):
                raise InvalidInput(f"{where}[{index}]: expected a row as long as the first, got {describe(row)}")
            for place, count in enumerate(row):
                if type(count) is not int or not 1 <= count <= MAX_TOKENS:
                    raise InvalidInput(
                        f"{where}[{index}][{place}]: expected an integer >= 1 and <= {MAX_TOKENS}, "
                        f"got {describe(count)}"
                    )
        rows = np.array(given, dtype=np.int64)
        rows.flags.writeable = False
        return cls(rows)

    def dump(self) -> list[list[int]]:
        """Return the list of rows."""
        rows: list[list[int]] = self.rows.tolist()
        return rows

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the list of rows."""
        count = {"type": "integer", "minimum": 1, "maximum": MAX_TOKENS}
        return {"type": "array", "minItems": 1, "items": {"type": "array", "items": count, "minItems": 1}}
