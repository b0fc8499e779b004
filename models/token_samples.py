"""Field value for equally likely samples of token counts. Each sample has one count per task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specopt.models.fields import MAX_TOKENS
from specopt.models.integer_table import IntegerTable


@dataclass(frozen=True, eq=False)
class TokenSamples(IntegerTable):
    """A table of equally likely samples of token counts. The JSON form is a list of rows.

    Parameters
    ----------
    rows
        Token counts from 1 to 10,000,000, shape (S, K), with one row per sample.
    """

    size = "at least one row"
    min_rows = 1
    entry = f"an integer >= 1 and <= {MAX_TOKENS}"
    min_entry = 1
    max_entry = MAX_TOKENS

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema for the list of rows."""
        count = {"type": "integer", "minimum": 1, "maximum": MAX_TOKENS}
        return {
            "type": "array",
            "minItems": 1,
            "items": {"type": "array", "items": count, "minItems": 1},
        }
