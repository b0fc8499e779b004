"""Any CSV table with a header: arrival_seconds, input_tokens, output_tokens, or columns that the
user names.
"""

from __future__ import annotations

from collections.abc import Mapping

from specopt.instances.reading.csv_rows import column_names
from specopt.instances.traces.clock import Clock
from specopt.instances.traces.table import Table

COLUMNS = {"arrival": "arrival_seconds", "input": "input_tokens", "output": "output_tokens"}
"""The columns unless others are named."""

PLAIN_CSV = Table(name="csv", time_unit="s", **COLUMNS)


def plain_csv(columns: Mapping[str, str] | None = None, time_unit: str | None = None) -> Table:
    """Return the format of a CSV table.

    Parameters
    ----------
    columns
        Names of the columns "arrival", "input" and "output", and of "name" if requests have names;
        those not given are called as in `COLUMNS`.
    time_unit
        One of "s" (default), "ms", "us", "ns" and "date".

    Raises
    ------
    InvalidInput
        If there is no such unit, or a key is none of these, or two name one column.
    """
    unit = Clock("s" if time_unit is None else time_unit).unit
    names = column_names(columns, COLUMNS, ("name",))
    label = names.pop("name", None)
    is_guess = time_unit is None and not names["arrival"].endswith(("seconds", "_s"))
    return Table(name=PLAIN_CSV.name, time_unit=unit, label=label, is_guess=is_guess, **names)
