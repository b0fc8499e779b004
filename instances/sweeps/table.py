"""Sweeps as CSV tables with a header, columns in any order.

Unknown columns are refused, not ignored: one that tells rows apart, say `context`, would make repetitions of them.
"""

from __future__ import annotations

from specopt.instances.reading.csv_rows import csv_rows, decimal, place
from specopt.instances.reading.lines import Lines
from specopt.instances.sweeps.rows import Rows
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.files import written_cell

REQUIRED = ("concurrency", "draft_length", "output_tokens_per_second")
OPTIONAL = ("mean_acceptance_length", "context_tokens", "workload", "repeat")
NO_SPECULATION = "none"


def read_csv(lines: Lines, rows: Rows) -> None:
    """Collect the rows of a table. What stands under `repeat` does not matter: repeated rows are repetitions.

    Raises
    ------
    InvalidInput
        If a column is missing, unknown or there twice, or a row is malformed; the message names line and column.
    """
    table = csv_rows(lines)
    line, header = next(table)
    places = {name: place(lines, line, header, name) for name in REQUIRED}
    for name in header:
        if name not in (*REQUIRED, *OPTIONAL):
            known = ", ".join((*REQUIRED, *OPTIONAL))
            raise InvalidInput(f"{lines.where}: line {line}: expected columns among {known}, got {describe(name)}")
        places[name] = place(lines, line, header, name)
    for line, fields in table:
        _Row(lines, line, {name: fields[at].strip() for name, at in places.items()}).add_to(rows)


class _Row:
    """One row: its cells by column, an absent column being an empty cell."""

    def __init__(self, lines: Lines, line: int, cells: dict[str, str]) -> None:
        self.lines, self.line, self.cells = lines, line, cells

    def add_to(self, rows: Rows) -> None:
        """Add the row's run."""
        unsaid = self.cells["draft_length"].lower() == NO_SPECULATION
        rows.add(
            f"line {self.line}, ",
            self.integer("concurrency"),
            None if unsaid else self.integer("draft_length", f"an integer, or {NO_SPECULATION}"),
            self.number("output_tokens_per_second"),
            self.number("mean_acceptance_length"),
            context_tokens=self.integer("context_tokens") if self.cells.get("context_tokens") else 0,
            workload=written_cell(self.cells.get("workload", "")),
        )

    def integer(self, name: str, expected: str = "an integer") -> int:
        """Return a cell that holds an integer."""
        value = decimal(self.cells[name])
        if value is None or not value.is_integer():
            raise self.lines.refuse(self.line, expected, self.cells[name], name)
        return int(value)

    def number(self, name: str) -> float | None:
        """Return a cell that may hold a number."""
        cell = self.cells.get(name, "")
        value = decimal(cell)
        if value is None and cell:
            raise self.lines.refuse(self.line, "a number, or nothing", cell, name)
        return value
