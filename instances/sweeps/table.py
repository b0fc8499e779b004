"""Reader for sweeps in the form of CSV tables with a header and columns in any order.

Unknown columns are ignored with a note. Columns whose names resemble a known name, such as
`context`, are rejected, because ignoring them could merge rows that differ in a relevant value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from specopt.instances.reading.fields import CsvFile, Row
from specopt.instances.reading.lines import Lines
from specopt.instances.sweeps.rows import Rows, Run
from specopt.instances.sweeps.source import NO_SPECULATION
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe, printable
from specopt.models.files import written_cell
from specopt.models.sweep import ALSO, Setup

REQUIRED = ("concurrency", "draft_length", "output_tokens_per_second")
OPTIONAL = (
    "mean_acceptance_length",
    "context_tokens",
    "workload",
    "drafter",
    "mode",
    "topk",
    *ALSO,
    "repeat",
)
ALIASES = {"draft": "drafter", "method": "drafter", "median_tpot_ms": "p50_tpot_ms"}
_STATISTIC = re.compile(r"(p\d+|median|std|min|max)_")


def csv_runs(lines: Lines, rows: Rows) -> Iterator[Run]:
    """Yield the run described by each row of a table.

    The column `repeat` is ignored, because equal rows are treated as repetitions in any case.

    Raises
    ------
    InvalidInput
        If a column is missing, unknown or occurs twice, or if a row is malformed. The message
        states the line and the column.
    """
    table = CsvFile(lines)
    line, table.header = table.line, [ALIASES.get(name, name) for name in table.header]
    known = (*REQUIRED, *OPTIONAL)
    extra = [name for name in table.header if name not in known]
    for name in extra:
        near = get_close_matches(name.lower(), known, 1, 0.85) or [
            one for one in known if one.startswith(f"{name}_")
        ]
        if near and not _STATISTIC.match(name):
            raise InvalidInput(
                f"{lines.where}: line {line}: expected each column to be one of {', '.join(known)},"
                f" got {describe(name)}; rename this column to {near[0]}, or remove it"
            )
    if extra:
        rows.notes.append(
            f"columns that are not used are ignored ({printable(', '.join(extra), 240)})"
        )
    wanted = {*REQUIRED, *table.header} - set(extra)
    table.need(*sorted(wanted, key=known.index))
    yield from map(_run, table)


def _run(fields: Row) -> Run:
    """Return the run described by a row."""
    also = {name: value for name in ALSO if (value := _number(fields, name)) is not None}
    unsaid = fields.text("draft_length").lower() == NO_SPECULATION
    mode, topk = written_cell(fields.text("mode")) or "fixed", fields.integer("topk")
    concurrency = fields.needed("concurrency")
    length = None if unsaid else fields.needed("draft_length", f"an integer, or {NO_SPECULATION}")
    return Run(
        fields=fields,
        tokens_per_second=_number(fields, "output_tokens_per_second"),
        concurrency=concurrency,
        said=length,
        acceptance_length=_number(fields, "mean_acceptance_length"),
        context_tokens=fields.integer("context_tokens") or 0,
        workload=written_cell(fields.text("workload")),
        setup=Setup(written_cell(fields.text("drafter")), mode, 1 if topk is None else topk),
        also=also,
    )


def _number(fields: Row, name: str) -> float | None:
    return fields.number(name, expected="a number or an empty field")
