"""Any CSV table with a header: arrival_seconds, input_tokens, output_tokens, or columns that the
user names.
"""

from __future__ import annotations

from collections.abc import Mapping

from specopt.instances.traces.clock import Clock
from specopt.instances.traces.table import Table
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe

COLUMNS = {"arrival": "arrival_seconds", "input": "input_tokens", "output": "output_tokens"}
"""The columns unless others are named."""


def plain_csv(columns: Mapping[str, str] | None = None, time_unit: str | None = None) -> Table:
    """Return the format of a CSV table.

    Parameters
    ----------
    columns
        Names of the columns "arrival", "input" and "output"; the default names are in `COLUMNS`.
    time_unit
        One of "s" (default), "ms", "us", "ns" and "date".

    Raises
    ------
    InvalidInput
        If there is no such unit, a key is none of these, a name is blank, or two name one column.
    """
    unit = Clock("s" if time_unit is None else time_unit).unit
    for key, name in (columns or {}).items():
        if key not in COLUMNS:
            raise InvalidInput(
                f"columns: expected keys among {', '.join(COLUMNS)}, got {describe(key)}"
            )
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput(
                f"columns: expected the name of a column for {key}, got {describe(name)}"
            )
    names = {key: name.strip() for key, name in {**COLUMNS, **(columns or {})}.items()}
    if len(set(names.values())) < len(names):
        raise InvalidInput(
            f"columns: expected {len(names)} different columns, got {', '.join(names.values())}"
        )
    is_guess = time_unit is None and not names["arrival"].endswith(("seconds", "_s"))
    return Table(name="csv", time_unit=unit, is_guess=is_guess, **names)


PLAIN_CSV = plain_csv()
