"""Performance profiles (Dolan and More 2002), which show the share of cells that each method solves
as a function of gap and of time.

The gap profile, on the left, shows the share of cells for which a method's plan is within a given
gap of the best bound, or of the best plan if there is no bound. Gaps below 0.0001 % are due to
rounding and are drawn at this value. The time profile, on the right, shows the share of cells that
a method solves within a given factor of the fastest method's time. A cell counts as solved if the
gap is at most 1 %, or if the method proves that no plan exists.

All methods are evaluated on the same cells, namely those that at least one method accepted. A
method that refused a cell or failed has not solved it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from specopt.comparison.cell import Record
from specopt.comparison.summary import time_of
from specopt.comparison.table import MIN_GAP, Comparison, expect_comparison
from specopt.kinds.chart import TOOLTIP, Chart, Picture, layer, looks, quantity
from specopt.models.fields import Floats

SOLVED = 0.01
"""Largest relative gap at which a cell counts as solved in the time profile."""

MAX_GAP, MIN_SECONDS = 1e3, 1e-4
"""Largest relative gap in the chart, and time in seconds to which shorter times are rounded up."""


def gap_profile(comparison: Comparison, kind: str) -> dict[str, Floats]:
    """Return each method's relative gaps in all cells in ascending order, by method label.

    If there is no bound, the distance from the best plan is used as the gap. The gap is infinite if
    the method has no plan, and 0 if it proves that no plan exists.
    """
    return _sorted(
        [
            {label: _gap(comparison, one) for label, one in cell.items()}
            for cell in comparison.cells(kind)
        ]
    )


def time_profile(comparison: Comparison, kind: str) -> dict[str, Floats]:
    """Return each method's time ratios in all cells in ascending order, by method label.

    A time ratio is the method's time divided by the time of the fastest method in the same cell.
    The ratio is infinite if the method does not solve the cell.
    """

    def ratios(cell: Mapping[str, Record]) -> dict[str, float]:
        solved = {
            label: max(MIN_SECONDS, time_of(record))
            for label, record in cell.items()
            if _gap(comparison, record) <= SOLVED
        }
        return {
            label: solved[label] / min(solved.values()) if label in solved else math.inf
            for label in cell
        }

    return _sorted([ratios(cell) for cell in comparison.cells(kind)])


def _sorted(cells: Sequence[Mapping[str, float]]) -> dict[str, Floats]:
    labels = sorted({label for cell in cells for label in cell})
    return {label: np.sort([cell.get(label, math.inf) for cell in cells]) for label in labels}


def profile_figure(comparison: Comparison) -> Picture:
    """Return a grid of charts that contains both profiles in one row per kind of problem."""
    expect_comparison(comparison)
    charts = [
        replace(chart, title=f"{kind}: {chart.title}")
        for kind in comparison.kinds
        for chart in profile_charts(comparison, kind)
    ]
    return Picture(charts, columns=2, width=560)


def profile_charts(comparison: Comparison, kind: str) -> tuple[Chart, Chart]:
    """Return the gap profile and the time profile for one kind of problem.

    A method that occurs in several kinds has the same line style in all charts.
    """
    least, widest = 100.0 * MIN_GAP, 100.0 * MAX_GAP
    counts = Counter(label for one in comparison.kinds for label in gap_profile(comparison, one))
    common = sorted(label for label, count in counts.items() if count > 1)
    shares = {
        label: np.where(100.0 * one < widest, np.maximum(100.0 * one, least), np.inf)
        for label, one in gap_profile(comparison, kind).items()
    }
    return (
        _profile(
            shares,
            "Share of the runs within a gap to the best bound",
            "gap (%)",
            f"Smaller gaps than {least:g} % are drawn at this value.",
            common,
        ),
        _profile(
            time_profile(comparison, kind),
            f"Share of the runs solved to {100 * SOLVED:g} % within a factor of the fastest",
            "time divided by that of the fastest method",
            "Solved: a plan within this distance of the best bound, or a proof.",
            common,
        ),
    )


def _profile(
    values: Mapping[str, Floats], title: str, x: str, note: str, common: Sequence[str]
) -> Chart:
    finite = [value for one in values.values() for value in one[np.isfinite(one)]]
    end = 1.5 * max(finite, default=1.0)
    rows = [
        {"method": label, x: float(at), "share of the runs (%)": 100.0 * share}
        for label, sorted_ in values.items()
        for at, share in _steps(sorted_, end)
    ]
    encoding = {
        "x": quantity(x, scale={"type": "log"}, axis={"format": "~g", "tickCount": 6}),
        "y": quantity("share of the runs (%)", scale={"domain": [0, 100]}),
        **looks("method", list(values), common),
    }
    mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 2, "tooltip": TOOLTIP}
    return Chart(title=title, rows=rows, spec=layer(mark, **encoding), note=note)


def _steps(values: Floats, end: float) -> list[tuple[float, float]]:
    """Return the vertices of a profile's step function, as pairs (value, share).

    The vertices extend to `end`, which is the end of the axis.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return [(end, 0.0)]
    places, last = np.unique(finite, return_index=True)
    reached = np.append(last[1:], len(finite)) / len(values)
    return [
        (float(places[0]), 0.0),
        *zip(places.tolist(), reached.tolist(), strict=True),
        (end, float(reached[-1])),
    ]


def _gap(comparison: Comparison, record: Record) -> float:
    if record.infeasible:
        return 0.0
    gap = comparison.gap(record)
    found = comparison.excess(record) if gap is None else gap
    return math.inf if found is None else found
