"""Performance profiles (Dolan and More 2002): which share of the cells a method solves within a factor of the best.

Left: share of cells whose plan is within a gap of the best bound, or within a shortfall of it where more is better.
Right: share of cells that a method solves within a
factor of the fastest method's time; solved is a plan within 1 % of the best bound, or of the best plan where there is
no bound, or a proof that there is no plan. Cells that failed stay in the count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from specopt.comparison.cell import Record
from specopt.comparison.summary import time_of
from specopt.comparison.table import Comparison
from specopt.kinds import kind_of
from specopt.models.fields import Floats
from specopt.views.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOLVED = 0.01
LEAST_GAP, WIDEST_GAP, LEAST_SECONDS = 1e-10, 1e3, 1e-4
_COLOURS = (
    "#33658a", "#b5495b", "#2f7d4f", "#8a6d1b", "#6a4c93", "#1d7a85", "#d07a2d", "#555555", "#9c3587", "#000000",
)  # fmt: skip


def gap_profile(comparison: Comparison, kind: str) -> dict[str, Floats]:
    """Return the gaps of every cell by method, sorted; infinite where there is no plan or bound."""
    return _sorted(comparison, kind, _gap)


def shortfall_profile(comparison: Comparison, kind: str) -> dict[str, Floats]:
    """Return the shortfalls of every cell by method, sorted, 0 to 1; infinite where there is no plan or bound."""
    return _sorted(comparison, kind, _shortfall)


def _sorted(comparison: Comparison, kind: str, of: Callable[[Comparison, Record], float]) -> dict[str, Floats]:
    return {
        label: np.sort([of(comparison, record) for record in records])
        for label, records in _by_label(comparison, kind).items()
    }


def time_profile(comparison: Comparison, kind: str) -> dict[str, Floats]:
    """Return the ratio of every cell's time to the fastest method's by method, sorted; infinite where unsolved."""
    fastest: dict[tuple[str, int], float] = {}
    labels = _by_label(comparison, kind)
    for records in labels.values():
        for record in records:
            if _gap(comparison, record) <= SOLVED:
                cell = (record.problem_sha256, record.seed)
                fastest[cell] = min(fastest.get(cell, math.inf), max(LEAST_SECONDS, time_of(record)))
    return {
        label: np.sort(
            [
                max(LEAST_SECONDS, time_of(record)) / fastest[record.problem_sha256, record.seed]
                if _gap(comparison, record) <= SOLVED
                else math.inf
                for record in records
            ]
        )
        for label, records in labels.items()
    }


def profile_figure(comparison: Comparison) -> Figure:
    """Return both profiles, a row per kind of problem.

    Raises
    ------
    MissingDependency
        If matplotlib is not installed.
    """
    kinds = sorted({record.kind for record in comparison})
    figure = new_figure(10.0, 0.4 + 3.2 * len(kinds))
    panels = figure.subplots(len(kinds), 2, squeeze=False)
    for (left, right), kind in zip(panels, kinds, strict=True):
        maximised = kind_of(kind).problem.sense == "maximize"
        gaps = shortfall_profile(comparison, kind) if maximised else gap_profile(comparison, kind)
        times = time_profile(comparison, kind)
        finite = [value for values in times.values() for value in values if math.isfinite(value)]
        widest = 1.5 * max(finite, default=10.0)
        large = [value for values in gaps.values() for value in values if 1.0 < value < WIDEST_GAP]
        widest_gap = 1.5 * max(large, default=1.0)
        for i, label in enumerate(gaps):
            style = {"color": _COLOURS[i % len(_COLOURS)], "linestyle": ("-", "--", ":")[i // len(_COLOURS) % 3]}
            _steps(left, np.maximum(gaps[label], LEAST_GAP), widest_gap, label, style)
            _steps(right, times[label], widest, label, style)
        measure = "shortfall" if maximised else "gap"
        left.set_title(f"{kind}: share of cells within a {measure}", loc="left", fontsize=10)
        left.set_xlabel(f"{measure} to the best bound of any method")
        right.set_title(f"solved to {100 * SOLVED:g} % within a factor of the fastest", loc="left", fontsize=10)
        right.set_xlabel("time relative to the fastest method")
        for axes in (left, right):
            axes.set_xscale("log")
            axes.set_ylim(-0.02, 1.02)
            axes.spines[["top", "right"]].set_visible(False)
        left.set_xlim(LEAST_GAP, widest_gap)
        if maximised:
            left.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        right.set_xlim(1.0, widest)
        right.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _steps(axes: object, values: Floats, end: float, label: str, style: dict[str, str]) -> None:
    finite = values[np.isfinite(values)]
    shares = np.arange(1, len(finite) + 1) / len(values)
    last = shares[-1] if len(finite) else 0.0
    first = finite[0] if len(finite) else end
    x = np.concatenate(([first], finite, [max(end, first)]))
    axes.step(x, np.concatenate(([0.0], shares, [last])), where="post", linewidth=1.3, label=label, **style)  # type: ignore[attr-defined]


def _by_label(comparison: Comparison, kind: str) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in comparison:
        if record.kind == kind:
            found.setdefault(record.label, []).append(record)
    return found


def _shortfall(comparison: Comparison, record: Record) -> float:
    share = 0.0 if record.infeasible else comparison.shortfall(record)
    return math.inf if share is None else share


def _gap(comparison: Comparison, record: Record) -> float:
    if record.infeasible:
        return 0.0
    gap = comparison.gap(record)
    if gap is None:
        gap = comparison.excess(record)
    return math.inf if gap is None else gap
