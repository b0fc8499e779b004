"""A plain-text table of the fields of a kind of problem."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from specopt.models.schema import ONE_OF, rows

WIDTH = 100
"""Width to which descriptions are wrapped, in characters."""


def table_text(schema: Mapping[str, Any]) -> str:
    """Return a string with one paragraph per field.

    The first line of a paragraph contains the field's name, unit, default and range. The
    description follows.
    """
    parts = []
    for row in rows(dict(schema)):
        default = (
            row["default"]
            if row["default"] in ("required", "optional", ONE_OF)
            else f"default {row['default']}"
        )
        head = f"{row['field']}  [{row['unit']}]  {default}; {row['range']}"
        lines = [
            head,
            *textwrap.wrap(
                row["description"], WIDTH, initial_indent="    ", subsequent_indent="    "
            ),
        ]
        parts.append("\n".join(lines))
    return "\n".join(parts)
