"""Tables of a comparison: methods by kind of problem, and paired tests. Tables can be written in
Markdown.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from specopt.comparison.paired import paired_tests
from specopt.comparison.summary import MethodSummary, summaries
from specopt.comparison.table import MIN_GAP, Comparison

TEST_SETS = (
    "Averages are over the common cells, which were accepted by every method of the kind that"
    " accepts at least half of all cells; other methods have no averages. Gaps are over the common"
    " cells in which each method has a plan. Of all cells, those that a method refused or in which"
    " it failed are unsolved."
)

Tables = dict[str, list[dict[str, Any]]]
"""Rows of tables, by table title."""


def tables_of(comparison: Comparison) -> Tables:
    """Return one table per kind of problem, by title.

    Columns for common cells precede the columns for all cells.
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in summaries(comparison):
        rows.setdefault(row.kind, []).append(_columns(row))
    problems = {kind: set[str]() for kind in rows}
    for record in comparison:
        problems.setdefault(record.kind, set()).add(record.problem_sha256)
    return {f"{kind}: {len(problems[kind])} instances": mine for kind, mine in rows.items()}


def _columns(row: MethodSummary) -> dict[str, Any]:
    return {
        "method": row.label,
        "common": row.cells,
        "best (%)": _percent(row.wins),
        "proven (%)": _percent(row.proven),
        "gap (%)": _percent(row.mean_gap),
        "max gap (%)": _percent(row.largest_gap),
        "time (s)": row.seconds,
        "all": row.all_cells,
        "refused": row.refused,
        "failed": row.failed,
        "no plan": row.without_plan,
        "best of all (%)": _percent(row.all_wins),
        "proven of all (%)": _percent(row.all_proven),
    }


def shown(value: object) -> str:
    """Format the value of a table cell."""
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share if share >= MIN_GAP else 0.0


def pairs_of_methods(comparison: Comparison) -> Tables:
    """Return the rows of all paired tests, by table title."""
    found: Tables = {}
    for test in paired_tests(comparison):
        row = {
            name.replace("_", " "): value for name, value in asdict(test).items() if name != "kind"
        }
        found.setdefault(f"{test.kind}: pairs of methods", []).append(row)
    return found


def markdown(tables: Tables) -> str:
    """Format tables as Markdown."""
    parts = []
    for title, (first, *others) in tables.items():
        rule = ["---"] + ["--:"] * (len(first) - 1)
        cells = (first, rule, *(map(shown, row.values()) for row in (first, *others)))
        rows = "".join(f"| {' | '.join(map(plain, row))} |\n" for row in cells)
        parts.append(f"## {title}\n\n{rows}")
    return "\n".join(parts)


def plain(text: str) -> str:
    """Escape the characters of a text that are special in Markdown."""
    text = "".join(char if char.isprintable() else " " for char in text)
    return "".join(f"\\{char}" if char in "\\`*_[]<>|" else char for char in text)
