"""Folders of comparisons as one leaderboard: Markdown, a table per kind of problem, and where its numbers come from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from specopt.comparison.cell import Record
from specopt.comparison.store import Store
from specopt.comparison.summary import TEST_SETS, MethodSummary, summaries, swept_cells
from specopt.comparison.table import LEAST_GAP, Comparison, newest
from specopt.kinds import kind_of
from specopt.models.errors import InvalidInput


def merged(folders: Sequence[str | os.PathLike[str]]) -> Comparison:
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


def opened(folder: str | os.PathLike[str]) -> Store:
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
    """Return the leaderboard of a comparison as Markdown."""
    rows = summaries(comparison)
    parts = []
    for kind in dict.fromkeys(row.kind for row in rows):
        problems = len({record.problem_sha256 for record in comparison if record.kind == kind})
        mine = [row for row in rows if row.kind == kind]
        parts += [f"## {kind}: {problems} instances", _table(kind, mine)]
    parts += [
        "Gap: |objective - bound| / |objective|; shortfall: (bound - objective) / bound; each the mean, to the best "
        "bound of any method, here or in the instance library. Proven: optimal by that bound, or proven infeasible. "
        f"Time: shifted geometric mean; what failed takes its time limit. {TEST_SETS}",
        "## Where the numbers come from",
        "\n".join(f"- {_plain(name)}: {_plain(text)}" for name, text in origins(comparison)),
    ]
    return "\n\n".join(parts) + "\n"


def _table(kind: str, rows: Sequence[MethodSummary]) -> str:
    maximised = kind_of(kind).problem.sense == "maximize"
    cells = [
        {
            "method": row.label, **swept_cells(row, rows), "common cells": str(row.cells),
            "best plan": _share(row.wins), "proven": _share(row.proven),
            "gap": _percent(row.mean_gap), **({"shortfall": _percent(row.mean_shortfall)} if maximised else {}),
            "time (s)": "" if row.seconds is None else f"{row.seconds:.3g}",
            "all cells": str(row.all_cells), "refused": str(row.refused), "failed": str(row.failed),
            "no plan": str(row.without_plan), "best of all": _share(row.all_wins),
            "proven of all": _share(row.all_proven),
        }
        for row in rows
    ]  # fmt: skip
    return "\n".join(map(_row, (cells[0], ["---"] + ["--:"] * (len(cells[0]) - 1), *(row.values() for row in cells))))


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


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share if share >= LEAST_GAP else 0:.3g} %"


def _share(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"
