"""Samples of token counts: a field that holds equally likely lists, one count for each of several in every list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from specopt.models.fields import MAX_TOKENS
from specopt.models.integer_table import IntegerTable


@dataclass(frozen=True, eq=False)
class TokenSamples(IntegerTable):
    """Token counts drawn several times; JSON: a list of rows.

    Parameters
    ----------
    rows
        Shape (S, K), each from 1 to 10,000,000.
    """

    size: ClassVar[str] = "at least one row"
    fewest_rows: ClassVar[int] = 1
    entry: ClassVar[str] = f"an integer >= 1 and <= {MAX_TOKENS}"
    least: ClassVar[int] = 1
    most: ClassVar[int] = MAX_TOKENS

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the list of rows."""
        count = {"type": "integer", "minimum": 1, "maximum": MAX_TOKENS}
        return {"type": "array", "minItems": 1, "items": {"type": "array", "items": count, "minItems": 1}}
