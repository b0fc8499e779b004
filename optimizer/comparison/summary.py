"""What a comparison says of each method: gaps, proofs, wins, times, failures; and of families of instances.

Failures and cells without a plan are counted, never dropped: they win and prove nothing, and take their time limit. A
proof that no plan is feasible is an answer like an optimal plan: it wins, it is proven, and takes the time it took.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from specopt.comparison.cell import Record
from specopt.comparison.table import Comparison

SHIFT_SECONDS = 0.01
"""Of the shifted geometric mean: times well below it hardly count."""


@dataclass(frozen=True, kw_only=True)
class MethodSummary:
    """One method on all its cells.

    Parameters
    ----------
    kind, label
        Of problems, and of the method with its options.
    cells, failed, without_plan
        How many, of these crashed or killed, and of these ended without a plan and without a proof that there is none.
    proven
        Share of the cells whose plan is optimal by the best bound of any method, or that are proven infeasible.
    wins
        Share of the cells in which no method has a better plan; a proof that there is none counts.
    mean_gap, largest_gap
        To the best bound of any method, over cells with a plan and a bound; None without any.
    mean_shortfall
        Of the best bound, over the same cells; None where the objective is to be minimised.
    seconds
        Shifted geometric mean of the time; a cell without an answer counts as its time limit.
    """

    kind: str
    label: str
    cells: int
    failed: int
    without_plan: int
    proven: float
    wins: float
    mean_gap: float | None
    largest_gap: float | None
    mean_shortfall: float | None
    seconds: float


def summaries(comparison: Comparison) -> list[MethodSummary]:
    """Return a summary per kind of problem and method, the best mean gap first."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in comparison:
        groups.setdefault((record.kind, record.label), []).append(record)
    found = []
    for (kind, label), records in groups.items():
        gaps = [gap for record in records if (gap := comparison.gap(record)) is not None]
        lacking = [share for record in records if (share := comparison.shortfall(record)) is not None]
        found.append(
            MethodSummary(
                kind=kind,
                label=label,
                cells=len(records),
                failed=sum(record.failed for record in records),
                without_plan=sum(not (answered(record) or record.failed) for record in records),
                proven=_share(records, comparison.proven),
                wins=_share(records, comparison.wins),
                mean_gap=float(np.mean(gaps)) if gaps else None,
                largest_gap=max(gaps) if gaps else None,
                mean_shortfall=float(np.mean(lacking)) if lacking else None,
                seconds=shifted_geometric_mean([time_of(record) for record in records]),
            )
        )
    return sorted(found, key=lambda s: (s.kind, -s.wins, math.inf if s.mean_gap is None else s.mean_gap, s.seconds))


def who_wins(comparison: Comparison) -> dict[str, dict[str, float]]:
    """Return the share of cells that each method wins, by family of instances: what stands before the last slash."""
    groups: dict[str, dict[str, list[Record]]] = {}
    for record in comparison:
        family = record.instance.rpartition("/")[0] or record.kind
        groups.setdefault(family, {}).setdefault(record.label, []).append(record)
    return {
        family: {label: _share(records, comparison.wins) for label, records in sorted(methods.items())}
        for family, methods in sorted(groups.items())
    }


def answered(record: Record) -> bool:
    """Return whether a record has a plan, or a proof that there is none."""
    return record.objective is not None or record.infeasible


def time_of(record: Record) -> float:
    """Return the seconds of a record; without an answer its time limit, or the time until it ended if that is more."""
    if record.seconds is not None and answered(record):
        return record.seconds
    return max(record.wall_seconds if record.seconds is None else record.seconds, record.time_limit or 0.0)


def shifted_geometric_mean(values: Sequence[float], shift: float = SHIFT_SECONDS) -> float:
    """Return exp(mean(log(value + shift))) - shift.

    Examples
    --------
    >>> round(shifted_geometric_mean([1.0, 4.0], shift=0.0), 12)
    2.0
    """
    return float(np.exp(np.mean(np.log(np.asarray(values) + shift))) - shift)


def _share(records: Sequence[Record], holds: Callable[[Record], bool]) -> float:
    return sum(map(holds, records)) / len(records)
