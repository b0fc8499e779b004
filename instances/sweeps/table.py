"""Sweeps as CSV tables with a header, columns in any order.

Unknown columns are left out with a note, unless their name is nearly a known one: `context` would tell rows apart.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from specopt.instances.reading.csv_rows import csv_rows, decimal, place
from specopt.instances.reading.lines import Lines
from specopt.instances.sweeps.rows import Rows
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe, printable
from specopt.models.files import written_cell
from specopt.models.sweep import ALSO, Setup

REQUIRED = ("concurrency", "draft_length", "output_tokens_per_second")
OPTIONAL = ("mean_acceptance_length", "context_tokens", "workload", "drafter", "mode", "topk", *ALSO, "repeat")
ALIASES = {"draft": "drafter", "method": "drafter", "median_tpot_ms": "p50_tpot_ms"}
_STATISTIC = re.compile(r"(p\d+|median|std|min|max)_")
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
    header = [ALIASES.get(name, name) for name in header]
    known = (*REQUIRED, *OPTIONAL)
    extra = [name for name in header if name not in known]
    for name in extra:
        near = get_close_matches(name.lower(), known, 1, 0.85) or [one for one in known if one.startswith(f"{name}_")]
        if near and not _STATISTIC.match(name):
            raise InvalidInput(
                f"{lines.where}: line {line}: expected columns among {', '.join(known)}, got {describe(name)}: rename "
                f"it, if {near[0]} is meant, and leave it out otherwise"
            )
    if extra:
        rows.notes.append(f"left out: columns that nothing here reads ({printable(', '.join(extra), 240)})")
    wanted = {*REQUIRED, *header} - set(extra)
    places = {name: place(lines, line, header, name) for name in sorted(wanted, key=known.index)}
    for line, fields in table:
        _Row(lines, line, {name: fields[at].strip() for name, at in places.items()}).add_to(rows)


class _Row:
    """One row: its cells by column, an absent column being an empty cell."""

    def __init__(self, lines: Lines, line: int, cells: dict[str, str]) -> None:
        self.lines, self.line, self.cells = lines, line, cells

    def add_to(self, rows: Rows) -> None:
        """Add the row's run."""
        also = {name: value for name in ALSO if (value := self.number(name)) is not None}
        unsaid = self.cells["draft_length"].lower() == NO_SPECULATION
        rows.add(
            f"line {self.line}, ",
            self.integer("concurrency"),
            None if unsaid else self.integer("draft_length", f"an integer, or {NO_SPECULATION}"),
            self.number("output_tokens_per_second"),
            self.number("mean_acceptance_length"),
            context_tokens=self.integer("context_tokens") if self.cells.get("context_tokens") else 0,
            workload=self.text("workload"),
            setup=Setup(
                self.text("drafter"), self.text("mode") or "fixed", self.integer("topk") if self.text("topk") else 1
            ),
            also=also,
        )

    def text(self, name: str) -> str:
        """Return what a cell says; empty: nothing."""
        return written_cell(self.cells.get(name, ""))

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
