"""What a comparison says of each method: gaps, proofs, wins, times, failures; and of families of
instances.

Methods are averaged over the same cells: the common ones, which every compared method of the kind
took. Beside them stand shares of all cells, of which a method that refuses a problem, fails or has
no plan solves none.

Failures and cells without a plan are counted, never dropped: they win and prove nothing, and take
their time limit. A proof that no plan is feasible is an answer like an optimal plan: it wins, it is
proven, and takes the time it took.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from specopt.comparison.cell import Record
from specopt.comparison.table import Comparison, expect_comparison

SHIFT_SECONDS = 0.01
"""Of the shifted geometric mean: times well below it hardly count."""


@dataclass(frozen=True, kw_only=True)
class MethodSummary:
    """One method, on the cells that it shares with all others of its kind, and on all cells of the
    kind.

    Parameters
    ----------
    kind, label
        Of problems, and of the method with its options.
    cells
        How many cells are common: every method of the kind took them.
    proven
        Share of the common cells whose plan is optimal by the best bound of any method, or that are
        proven infeasible.
    wins
        Share of the common cells in which no method has a better plan; a proof that there is none
        counts.
    mean_gap, largest_gap
        To the best bound of any method, over the common cells with a bound in which every method
        has a plan (methods without any plan aside); None without any.
    seconds
        Shifted geometric mean of the time over the common cells; a cell without an answer counts as
        its time limit.
    all_cells, refused, failed, without_plan
        How many cells any method took; of these refused by this one, crashed or killed, and ended
        without a plan and without a proof that there is none.
    all_proven, all_wins
        Shares as `proven` and `wins`, of all cells: what was refused or failed is unsolved.
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
    """Return a summary per kind of problem and method, the most wins first.

    Averages are over the common cells (see `Comparison.common`), and None where there are none.
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
                    seconds=shifted_geometric_mean([time_of(record) for record in mine])
                    if mine
                    else None,
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
    """Return the share of all cells that each method wins, by family of instances: what stands
    before the last slash.

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
    """Return the family of a record's instance: what stands before the last slash; its kind where
    there is none.
    """
    return record.instance.rpartition("/")[0] or record.kind


def answered(record: Record) -> bool:
    """Return whether a record has a plan, or a proof that there is none."""
    return record.objective is not None or record.infeasible


def time_of(record: Record) -> float:
    """Return the seconds of a record; without an answer its time limit, or the time until it ended
    if that is more.
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
