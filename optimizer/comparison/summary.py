"""Summaries of a comparison by method (gaps, proofs, wins, times, failures), and by family.

Averages of all methods are over the same cells: the common ones, which every compared method of the
kind accepted. Shares of all cells are given in addition; a method that refuses a problem, fails or
has no plan does not solve its cell.

Failures and cells without a plan are never dropped: they win and prove nothing, and their time is
the time limit. A proof that no plan is feasible is an answer like an optimal plan: it wins, it is
proven, and its time is the time of the proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from specopt.comparison.cell import Record
from specopt.comparison.table import Comparison, expect_comparison

SHIFT_SECONDS = 0.01
"""Shift of the shifted geometric mean, in seconds; much shorter times hardly change the mean."""


@dataclass(frozen=True, kw_only=True)
class MethodSummary:
    """One method, on the cells that it shares with all others of its kind, and on all cells.

    Parameters
    ----------
    kind
        Kind of the problems.
    label
        Name of the method with its options.
    cells
        Number of common cells, which every method of the kind accepted.
    proven
        Share of the common cells whose plan is optimal by the best bound of any method, or that are
        proven infeasible.
    wins
        Share of the common cells in which no method has a better plan, or which the method proves
        infeasible.
    mean_gap
        Mean gap to the best bound of any method, over the common cells with a bound in which every
        method has a plan (excluding methods without any plan); None without such cells.
    largest_gap
        Largest gap over the same cells.
    seconds
        Shifted geometric mean of the time over the common cells; the time limit replaces the time
        of a cell without an answer.
    all_cells
        Number of cells that at least one method accepted.
    refused
        Number of these cells that this method refused.
    failed
        Number of cells in which this method crashed or was killed.
    without_plan
        Number of cells in which this method ended without a plan and without a proof of
        infeasibility.
    all_proven
        Share as `proven`, of all cells: refused and failed cells are unsolved.
    all_wins
        Share as `wins`, of all cells.
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
    """Return a summary per kind of problem and method, sorted by wins.

    Averages are over the common cells (see `Comparison.common`), and None without common cells.
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
    """Return the share of all cells that each method wins, by family of instances.

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
    """Return the family of a record's instance: the part of its name before the last slash, or else
    its kind.
    """
    return record.instance.rpartition("/")[0] or record.kind


def answered(record: Record) -> bool:
    """Return whether a record has a plan, or a proof that no plan exists."""
    return record.objective is not None or record.infeasible


def time_of(record: Record) -> float:
    """Return the seconds of a record; without an answer, its time limit or its duration, whichever
    is longer.
    """
    if record.seconds is not None and answered(record):
        return record.seconds
    return max(
        record.wall_seconds if record.seconds is None else record.seconds, record.time_limit or 0.0
    )


def shifted_geometric_mean(values: Sequence[float], shift: float = SHIFT_SECONDS) -> float:
    """Return exp(mean(log(value + shift))) - shift.

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
