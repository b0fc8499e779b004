"""Performance profiles (Dolan and More 2002): which share of the cells a method solves within a factor of the best.

Left: share of cells whose plan is within a gap of the best bound, or within a shortfall of it where more is better;
what is below 0.0001 % is rounding, and drawn as 0. Right: share of cells that a method solves within a factor of the
fastest method's time; solved is a plan within 1 % of the best bound, or of the best plan where there is no bound, or a
proof that there is no plan. Cells that failed stay in the count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from specopt.comparison.cell import Record
from specopt.comparison.summary import time_of
from specopt.comparison.table import LEAST_GAP, Comparison
from specopt.kinds import kind_of
from specopt.models.fields import Floats
from specopt.views.canvas import line_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SOLVED = 0.01
WIDEST_GAP, LEAST_SECONDS = 1e3, 1e-4
NO_GAP = 1e-7
"""Where gaps below the least one are drawn."""


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
            _steps(left, np.where(gaps[label] < LEAST_GAP, NO_GAP, gaps[label]), widest_gap, label, line_style(i))
            _steps(right, times[label], widest, label, line_style(i))
        measure = "shortfall" if maximised else "gap"
        left.set_title(f"{kind}: share of cells within a {measure}", loc="left", fontsize=10)
        left.set_xlabel(f"{measure} to the best bound of any method")
        left.set_ylabel("share of cells")
        right.set_title(f"solved to {100 * SOLVED:g} % within a factor of the fastest", loc="left", fontsize=10)
        right.set_xlabel("time, multiples of the fastest method's")
        for axes in (left, right):
            axes.set_xscale("log")
            axes.minorticks_off()
            axes.set_ylim(-0.02, 1.02)
            axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
            axes.spines[["top", "right"]].set_visible(False)
        left.set_xticks([NO_GAP, 1e-6, 1e-4, 1e-2, *(gap for gap in (1.0, 100.0) if gap < widest_gap)])
        left.xaxis.set_major_formatter(lambda gap, _: "0" if gap == NO_GAP else f"{100 * gap:g} %")
        left.set_xlim(0.6 * NO_GAP, widest_gap)
        right.set_xticks(_round_factors(widest))
        right.xaxis.set_major_formatter("{x:g}")
        right.set_xlim(0.95, widest)
        right.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=4.0)
    return figure


def _round_factors(widest: float) -> list[float]:
    """Return round numbers from 1 on, few enough for an axis."""
    digits = (1, 2, 5) if widest < 50 else (1,)
    every = max(1, math.ceil(math.log10(widest) / 6))
    powers = range(0, math.ceil(math.log10(widest)) + 1, every)
    return [digit * 10.0**power for power in powers for digit in digits if digit * 10.0**power <= widest]


def _steps(axes: Axes, values: Floats, end: float, label: str, style: tuple[str, str]) -> None:
    finite = values[np.isfinite(values)]
    shares = np.arange(1, len(finite) + 1) / len(values)
    last = shares[-1] if len(finite) else 0.0
    first = finite[0] if len(finite) else end
    x = np.concatenate(([first], finite, [max(end, first)]))
    y = np.concatenate(([0.0], shares, [last]))
    axes.step(x, y, where="post", linewidth=1.3, label=label, color=style[0], linestyle=style[1])


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
