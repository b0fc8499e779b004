"""Tables of a comparison: methods by kind of problem, paired tests, and how they look in Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from specopt.comparison.paired import paired_tests
from specopt.comparison.summary import MethodSummary, summaries
from specopt.comparison.table import LEAST_GAP, Comparison
from specopt.kinds import kind_of
from specopt.models.files import csv_text

TEST_SETS = (
    "Averages are over the common cells, which every method of the kind took that takes at least half of all cells; "
    "other methods have no averages. Gaps are over those in which each has a plan. Of all cells, what a method refused "
    "or failed counts as unsolved."
)

Tables = dict[str, list[dict[str, Any]]]
"""Rows of tables by their titles."""

_TEX = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"} | {
    c: f"\\{c}" for c in "&%$#_{}"
}


def tables_of(comparison: Comparison) -> Tables:
    """Return a table per kind of problem, by its title: first the columns of common cells, then those of all cells."""
    groups: dict[str, list[MethodSummary]] = {}
    for row in summaries(comparison):
        groups.setdefault(row.kind, []).append(row)
    found = {}
    for kind, mine in groups.items():
        problems = len({record.problem_sha256 for record in comparison if record.kind == kind})
        swept = dict.fromkeys(name for row in mine for name in row.parameters)
        found[f"{kind}: {problems} instances"] = [_columns(row, swept) for row in mine]
    return found


def _columns(row: MethodSummary, swept: Iterable[str]) -> dict[str, Any]:
    maximised = kind_of(row.kind).problem.sense == "maximize"
    return {
        "method": row.label, **{name: row.parameters.get(name) for name in swept}, "common": row.cells,
        "best (%)": _percent(row.wins), "proven (%)": _percent(row.proven),
        "gap (%)": _percent(row.mean_gap), "max gap (%)": _percent(row.largest_gap),
        **({"shortfall (%)": _percent(row.mean_shortfall)} if maximised else {}), "time (s)": row.seconds,
        "all": row.all_cells, "refused": row.refused, "failed": row.failed, "no plan": row.without_plan,
        "best of all (%)": _percent(row.all_wins), "proven of all (%)": _percent(row.all_proven),
    }  # fmt: skip


def shown(value: object) -> str:
    """Return a cell of a table as text."""
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share if share >= LEAST_GAP else 0.0


def pairs_of_methods(comparison: Comparison) -> Tables:
    """Return the rows of all paired tests, by the title of their table."""
    found: Tables = {}
    for test in paired_tests(comparison):
        row = {name.replace("_", " "): value for name, value in asdict(test).items() if name != "kind"}
        found.setdefault(f"{test.kind}: pairs of methods", []).append(row)
    return found


def markdown(tables: Tables) -> str:
    """Return tables in Markdown."""
    parts = []
    for title, (first, *others) in tables.items():
        rule = ["---"] + ["--:"] * (len(first) - 1)
        cells = (first, rule, *(map(shown, row.values()) for row in (first, *others)))
        rows = "".join(f"| {' | '.join(map(plain, row))} |\n" for row in cells)
        parts.append(f"## {title}\n\n{rows}")
    return "\n".join(parts)


def latex(tables: Tables) -> str:
    """Return tables in LaTeX, for the package booktabs."""
    parts = []
    for title, rows in tables.items():
        head, *lines = (" & ".join(map(_tex, cells)) for cells in (rows[0], *(row.values() for row in rows)))
        body = "".join(f"{line} \\\\\n" for line in lines)
        columns = "l" + "r" * (len(rows[0]) - 1)
        parts.append(
            f"% {title}\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n{head} \\\\\n\\midrule\n{body}"
            "\\bottomrule\n\\end{tabular}\n"
        )
    return "\n".join(parts)


def comma_separated(tables: Tables) -> str:
    """Return tables as one table of CSV, each row with its kind, unrounded."""
    rows = [{"kind": title.partition(":")[0], **row} for title, mine in tables.items() for row in mine]
    names = dict.fromkeys(name for row in rows for name in row)
    return csv_text([names, *([row.get(name) for name in names] for row in rows)])


FORMS: dict[str, Callable[[Tables], str]] = {".tex": latex, ".csv": comma_separated, ".md": markdown}
"""Forms of tables by the ending of their file."""


def plain(text: str) -> str:
    """Return a text in which Markdown finds nothing: names in records are as their authors like."""
    text = "".join(char if char.isprintable() else " " for char in text)
    return "".join(f"\\{char}" if char in "\\`*_[]<>|" else char for char in text)


def _tex(value: object) -> str:
    """Return a cell in which LaTeX finds nothing."""
    return "".join(_TEX.get(char, char) for char in shown(value) if char.isprintable())
