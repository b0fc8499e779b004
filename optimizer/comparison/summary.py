"""Summaries of a comparison by method and by family, which can be written as Markdown tables.

To compare methods fairly, averages are taken only over the common cells, which were accepted by
every method of the kind that accepted at least half of the cells. In addition, shares of all cells
are reported.

Failures and cells without a plan are never dropped: such a cell is neither won nor proven, and its
time is at least the time limit. A proof that no feasible plan exists counts like an optimal plan:
the cell is won and proven, and its time is the duration of the proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from specopt.comparison.cell import Record
from specopt.comparison.paired import paired_tests
from specopt.comparison.table import MIN_GAP, Comparison, expect_comparison

SHIFT_SECONDS = 0.01
"""Shift of the shifted geometric mean, in seconds.

Times much shorter than the shift hardly change the mean.
"""

TEST_SETS = (
    "Averages are over the common cells, which were accepted by every method of the kind that"
    " accepts at least half of all cells; other methods have no averages. Gaps are over the common"
    " cells in which each method has a plan. Of all cells, those that a method refused or in which"
    " it failed count as unsolved."
)

Tables = dict[str, list[dict[str, Any]]]
"""Tables by title. Each table is a list of rows."""


@dataclass(frozen=True, kw_only=True)
class MethodSummary:
    """Summary of one method, over the common cells of its kind and over all cells.

    Parameters
    ----------
    kind
        Kind of the problems.
    label
        Name of the method, followed by its options.
    cells
        Number of common cells; see `Comparison.common`. This is 0 for a method that accepted fewer
        than half of all cells.
    proven
        Share of the common cells in which the method's plan is proven optimal by the best known
        bound, or in which the method proves infeasibility.
    wins
        Share of the common cells in which no better plan is known, or in which the method proves
        infeasibility.
    mean_gap
        Mean relative gap to the best known bound. The mean is taken over the common cells in which
        every method has a gap; methods that never have a gap are ignored. None if there are no such
        cells.
    largest_gap
        Largest relative gap in the cells over which `mean_gap` is taken.
    seconds
        Shifted geometric mean of the solution time over the common cells, in seconds. A cell
        without a plan or a proof of infeasibility contributes at least the time limit.
    all_cells
        Number of cells that at least one method accepted.
    refused
        Number of the cells counted in `all_cells` that this method refused.
    failed
        Number of cells in which this method crashed or was killed.
    without_plan
        Number of cells in which this method ended without a plan and without a proof of
        infeasibility.
    all_proven
        Share of proven cells, as defined for `proven`, but over all cells. Refused and failed cells
        count as not proven.
    all_wins
        Share of won cells, as defined for `wins`, but over all cells.
    """

    kind: str
    label: str
    cells: int
    proven: float | None
    wins: float | None
    mean_gap: float | None
    largest_gap: float | None
    seconds: float | None
    all_cells: int
    refused: int
    failed: int
    without_plan: int
    all_proven: float
    all_wins: float


def summaries(comparison: Comparison) -> list[MethodSummary]:
    """Return one summary for each method and kind of problem.

    The summaries are sorted by kind and then by decreasing share of wins.

    Averages are taken over the common cells (see `Comparison.common`). If there are no common
    cells, the averages are None.
    """
    expect_comparison(comparison)
    found = []
    for kind in comparison.kinds:
        cells = comparison.cells(kind)
        common = comparison.common(cells)
        planning = {
            label for cell in common for label in cell if comparison.gap(cell[label]) is not None
        }
        planned = [
            cell
            for cell in common
            if all(comparison.gap(cell[label]) is not None for label in planning)
        ]
        for label in dict.fromkeys(label for cell in cells for label in cell):
            records, mine, priced = (
                [cell[label] for cell in some if label in cell] for some in (cells, common, planned)
            )
            gaps = [gap for record in priced if (gap := comparison.gap(record)) is not None]
            found.append(
                MethodSummary(
                    kind=kind,
                    label=label,
                    cells=len(mine),
                    proven=_mean(map(comparison.proven, mine)),
                    wins=_mean(map(comparison.wins, mine)),
                    mean_gap=_mean(gaps),
                    largest_gap=max(gaps, default=None),
                    seconds=shifted_geometric_mean([*map(time_of, mine)]) if mine else None,
                    all_cells=len(cells),
                    refused=len(cells) - len(records),
                    failed=sum(record.failed for record in records),
                    without_plan=sum(not (answered(record) or record.failed) for record in records),
                    all_proven=sum(map(comparison.proven, records)) / len(cells),
                    all_wins=sum(map(comparison.wins, records)) / len(cells),
                )
            )

    return sorted(
        found,
        key=lambda s: (s.kind, -(s.wins or 0.0), -s.all_wins, _last(s.mean_gap), _last(s.seconds)),
    )


def who_wins(comparison: Comparison) -> dict[str, dict[str, float]]:
    """Return the share of cells that each method wins, by family of instances and method label.

    A method that refuses a cell does not win it.
    """
    found: dict[str, dict[str, list[bool]]] = {}
    for kind in comparison.kinds:
        cells = [(family_of(next(iter(cell.values()))), cell) for cell in comparison.cells(kind)]
        for family, label in sorted({(family, label) for family, cell in cells for label in cell}):
            won = found.setdefault(family, {}).setdefault(label, [])
            won += [
                label in cell and comparison.wins(cell[label]) for of, cell in cells if of == family
            ]
    return {
        family: {label: sum(won) / len(won) for label, won in found[family].items()}
        for family in sorted(found)
    }


def family_of(record: Record) -> str:
    """Return the family to which a record's instance belongs.

    The family is the part of the instance's name before the last slash. If there is no slash, the
    kind is returned instead.
    """
    return record.instance.rpartition("/")[0] or record.kind


def answered(record: Record) -> bool:
    """Return whether a record contains a plan or a proof that no plan exists."""
    return record.objective is not None or record.infeasible


def time_of(record: Record) -> float:
    """Return the solution time of a record, in seconds.

    If the cell has neither a plan nor a proof of infeasibility, the result is the time limit or the
    actual duration, whichever is longer.
    """
    if record.seconds is not None and answered(record):
        return record.seconds
    return max(
        record.wall_seconds if record.seconds is None else record.seconds, record.time_limit or 0.0
    )


def shifted_geometric_mean(values: Sequence[float], shift: float = SHIFT_SECONDS) -> float:
    """Return the shifted geometric mean, exp(mean(log(value + shift))) - shift.

    Examples
    --------
    >>> round(shifted_geometric_mean([1.0, 4.0], shift=0.0), 12)
    2.0
    """
    return float(np.exp(np.mean(np.log(np.asarray(values) + shift))) - shift)


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return float(np.mean(found)) if found else None


def _last(value: float | None) -> float:
    return math.inf if value is None else value


def tables_of(comparison: Comparison) -> Tables:
    """Return one summary table per kind of problem, by table title.

    The columns for common cells come before the columns for all cells.
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
    """Format a value for display in a table cell."""
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share if share >= MIN_GAP else 0.0


def pairs_of_methods(comparison: Comparison) -> Tables:
    """Return tables of all paired tests, by title. Each row compares two methods."""
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
    """Escape the characters in a string that have a special meaning in Markdown."""
    text = "".join(char if char.isprintable() else " " for char in text)
    return "".join(f"\\{char}" if char in "\\`*_[]<>|" else char for char in text)
