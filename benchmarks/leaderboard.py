"""Write folders of comparisons as one leaderboard, with a table per kind of problem and the source
of its numbers.

    python benchmarks/leaderboard.py FOLDER... [-o FILE.md]

Families in which all methods find equally good plans share one row and are excluded from the other
rows.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from specopt.comparison.cell import Record
from specopt.comparison.store import merged
from specopt.comparison.summary import TEST_SETS, Tables, family_of, markdown, plain, tables_of
from specopt.comparison.table import Comparison
from specopt.report.comparison import origins


def leaderboard(comparison: Comparison) -> str:
    """Return the leaderboard of a comparison as Markdown: a table per kind, its meaning and its
    source.
    """
    parts = [
        markdown(leaderboard_tables(comparison)).rstrip(),
        (
            "Gap: |objective - bound| / |objective|, the mean, to the best bound of any method,"
            " here or in the instance library. Proven: optimal by that bound, or proven"
            " infeasible. Time: shifted geometric mean; what failed takes its time limit."
            f" {TEST_SETS} Families on which all methods find equally good plans are one row, and"
            " the other rows leave them out."
        ),
        "## Where the numbers come from",
        "\n".join(f"- {plain(name)}: {plain(text)}" for name, text in origins(comparison)),
    ]
    return "\n\n".join(parts) + "\n"


def leaderboard_tables(comparison: Comparison) -> Tables:
    """Return the tables of a comparison. Families in which all methods are equally good share one
    row.
    """
    alike = equal_families(comparison)
    known = {record.problem_sha256: comparison.best(record) for record in comparison}
    others = Comparison(
        [one for one in comparison if (one.kind, family_of(one)) not in alike], known
    )
    rows = {title.partition(":")[0]: table for title, table in tables_of(others).items()}
    found: Tables = {}
    for title, whole in tables_of(comparison).items():
        kind = title.partition(":")[0]
        found[title] = rows.get(kind, [])
        if cells := alike_cells(comparison, kind, alike):
            names = ", ".join(sorted(family for of, family in alike if of == kind))
            label = f"all {max(map(len, cells))} methods alike: {names}"
            one = [replace(next(iter(cell.values())), method=label, label=label) for cell in cells]
            ((row,),) = tables_of(Comparison(one, known)).values()
            row["time (s)"] = None
            found[title].append({name: row.get(name) for name in whole[0]})
    return found


def alike_cells(
    comparison: Comparison, kind: str, alike: set[tuple[str, str]]
) -> list[dict[str, Record]]:
    """Return the cells of a kind that belong to some families."""
    return [
        cell
        for cell in comparison.cells(kind)
        if (kind, family_of(next(iter(cell.values())))) in alike
    ]


def equal_families(comparison: Comparison) -> set[tuple[str, str]]:
    """Return the kind and family, except swept ones, for which several methods have equally good
    plans in every cell.
    """
    families = [
        (kind, family_of(next(iter(cell.values()))), cell)
        for kind in comparison.kinds
        for cell in comparison.cells(kind)
    ]
    different = {
        (kind, family)
        for kind, family, cell in families
        if "[" in family or len(cell) < 2 or not all(map(comparison.wins, cell.values()))
    }
    return {(kind, family) for kind, family, _ in families} - different


def main() -> None:
    """Print or write a leaderboard."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument(
        "folders", nargs="+", metavar="FOLDER", help="kept results of specopt compare"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.md", help="default: print it")
    given = parser.parse_args()
    text = leaderboard(merged(given.folders))
    if given.output is None:
        print(text, end="")
    else:
        given.output.write_text(text)


if __name__ == "__main__":
    main()
