"""Folders of comparisons as one leaderboard: Markdown, a table per kind of problem, and where its numbers come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from specopt.comparison.cell import Record
from specopt.comparison.paired import paired_tests
from specopt.comparison.store import Store
from specopt.comparison.summary import TEST_SETS, Tables, shown, tables_of
from specopt.comparison.table import Comparison, newest
from specopt.models.errors import InvalidInput
from specopt.models.files import csv_text
from specopt.models.reading import StrPath

_TEX = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"} | {
    c: f"\\{c}" for c in "&%$#_{}"
}


def merged(folders: Sequence[StrPath]) -> Comparison:
    """Return the newest record of every cell in some folders.

    Raises
    ------
    InvalidInput
        If a folder has no records, or methods of two distributions share a name.
    """
    records = [record for folder in folders for record in opened(folder).records().values()]
    owners: dict[tuple[str, str], str] = {}
    for record in newest(records):
        owner = record.sources.get("version", "").partition(" ")[0]
        other = owners.setdefault((record.kind, record.method), owner)
        if other != owner:
            names = " and ".join(repr(name or "no distribution") for name in (other, owner))
            raise InvalidInput(f"{record.kind}: methods of {names} share the name {record.method!r}")
    return Comparison(newest(records))


def opened(folder: StrPath) -> Store:
    """Return a folder of results, and say what in it is damaged.

    Raises
    ------
    InvalidInput
        If it has no records.
    """
    store = Store(folder) if Path(folder).is_dir() else None
    if store is None or not store.records():
        why = "" if store is None or not store.damaged else f"; {store.damaged[0]}"
        raise InvalidInput(f"{folder}: expected a folder with results of a comparison, got none{why}")
    store.say_damaged()
    return store


def leaderboard(comparison: Comparison) -> str:
    """Return the leaderboard of a comparison as Markdown: a table per kind, what it means, and where it comes from."""
    parts = [
        markdown(tables_of(comparison, apart=True)),
        "Gap: |objective - bound| / |objective|; shortfall: (bound - objective) / bound; each the mean, to the best "
        "bound of any method, here or in the instance library. Proven: optimal by that bound, or proven infeasible. "
        f"Time: shifted geometric mean; what failed takes its time limit. {TEST_SETS} Families on which all methods "
        "find equally good plans are one row, and the other rows leave them out.",
        "## Where the numbers come from",
        "\n".join(f"- {_plain(name)}: {_plain(text)}" for name, text in origins(comparison)),
    ]
    return "\n\n".join(parts) + "\n"


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
    for title, rows in tables.items():
        rule = ["---"] + ["--:"] * (len(rows[0]) - 1)
        parts += [f"## {title}", "\n".join(map(_row, (rows[0], rule, *(map(shown, row.values()) for row in rows))))]
    return "\n\n".join(parts)


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


def origins(records: Iterable[Record]) -> list[tuple[str, str]]:
    """Return what the numbers of records hang on: machines, versions, limits, seeds, digests of sources."""
    facts: dict[str, list[str]] = {}
    for record in records:
        machine = ", ".join(f"{name} {value}" for name, value in sorted(record.machine.items()))
        limit = "work" if record.time_limit is None else f"{record.time_limit:g} s"
        found = {
            "Command": record.command,
            "Machine": machine,
            "Versions": ", ".join(f"{name} {value}" for name, value in sorted(record.versions.items())),
            "Time limit": f"{limit}, gap {record.gap_limit:g}",
            "Seed": str(record.seed),
            f"{record.kind} {record.method}": ", ".join(f"{k} {v}" for k, v in sorted(record.sources.items())),
        }
        for name, text in found.items():
            if text and text not in facts.setdefault(name, []):
                facts[name].append(text)
    return [(name, "; ".join(texts)) for name, texts in facts.items() if texts]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(text: str) -> str:
    """Return a text in which Markdown finds nothing: names in records are as their authors like."""
    text = "".join(char if char.isprintable() else " " for char in text)
    return "".join(f"\\{char}" if char in "\\`*_[]<>|" else char for char in text)


def _tex(value: object) -> str:
    """Return a cell in which LaTeX finds nothing."""
    return "".join(_TEX.get(char, char) for char in shown(value) if char.isprintable())
