"""Performance profiles (Dolan and More 2002): which share of the cells a method solves within a factor of the best.

Left: share of cells whose plan is within a gap of the best bound, or within a shortfall of it where more is better;
what is below 0.0001 % is rounding, and drawn there. Right: share of cells that a method solves within a factor of the
fastest method's time. A cell is solved by a plan within 1 % of the best bound (of the best plan if there is no bound),
or by a proof that there is no plan. All methods have one test set, the cells that any of them took: a method that has
no result for an instance, because it refused it or failed, has not solved it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from specopt.comparison.cell import Record
from specopt.comparison.summary import time_of
from specopt.comparison.table import LEAST_GAP, Comparison
from specopt.kinds import kind_of
from specopt.kinds.chart import TOOLTIP, Chart, Picture, layer, looks, quantity
from specopt.models.fields import Floats

SOLVED = 0.01
WIDEST_GAP, LEAST_SECONDS = 1e3, 1e-4


def distance_profile(comparison: Comparison, kind: str) -> dict[str, Floats]:
    """Return the gaps of every cell by method, sorted; infinite where there is no plan or bound.

    Where more is better these are the shortfalls, 0 to 1.
    """
    if _maximised(kind):
        return _sorted(comparison, kind, lambda record: _reached(record, comparison.shortfall(record)))
    return _sorted(comparison, kind, lambda record: _gap(comparison, record))


def _maximised(kind: str) -> bool:
    return kind_of(kind).problem.sense == "maximize"


def _sorted(comparison: Comparison, kind: str, of: Callable[[Record], float]) -> dict[str, Floats]:
    cells = list(comparison.cells(kind).values())
    labels = sorted({label for cell in cells for label in cell})
    return {label: np.sort([of(cell[label]) if label in cell else math.inf for cell in cells]) for label in labels}


def time_profile(comparison: Comparison, kind: str) -> dict[str, Floats]:
    """Return the ratio of every cell's time to the fastest method's by method, sorted; infinite where unsolved."""

    def seconds(record: Record) -> float:
        return max(LEAST_SECONDS, time_of(record)) if _gap(comparison, record) <= SOLVED else math.inf

    fastest = {
        record.key: min(map(seconds, cell.values()))
        for cell in comparison.cells(kind).values()
        for record in cell.values()
    }
    return _sorted(
        comparison,
        kind,
        lambda one: seconds(one) / fastest[one.key] if math.isfinite(fastest[one.key]) else math.inf,
    )


def profile_figure(comparison: Comparison) -> Picture:
    """Return both profiles, a row per kind of problem."""
    kinds = sorted({record.kind for record in comparison})
    charts = [
        replace(chart, title=f"{kind}: {chart.title}") for kind in kinds for chart in profile_charts(comparison, kind)
    ]
    return Picture(charts, columns=2, width=560)


def profile_charts(comparison: Comparison, kind: str) -> tuple[Chart, Chart]:
    """Return both profiles of a kind of problem."""
    measure = "shortfall" if _maximised(kind) else "gap"
    least, widest = 100.0 * LEAST_GAP, 100.0 * WIDEST_GAP
    shares = {
        label: np.where(100.0 * one < widest, np.maximum(100.0 * one, least), np.inf)
        for label, one in distance_profile(comparison, kind).items()
    }
    return (
        _profile(
            shares, f"Share of the runs within a {measure} to the best bound", f"{measure} (%)",
            f"What is below {least:g} % is drawn there.",
        ),
        _profile(
            time_profile(comparison, kind),
            f"Share of the runs solved to {100 * SOLVED:g} % within a factor of the fastest",
            "time over that of the fastest method", "Solved: a plan that close to the best bound, or a proof.",
        ),
    )  # fmt: skip


def _profile(values: Mapping[str, Floats], title: str, x: str, note: str) -> Chart:
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
        **looks("method", list(values)),
    }
    mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 2, "tooltip": TOOLTIP}
    return Chart(title=title, rows=rows, spec=layer(mark, **encoding), note=note)


def _steps(values: Floats, end: float) -> list[tuple[float, float]]:
    """Return where a profile steps and to which share, up to the end of the axis."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return [(end, 0.0)]
    places, last = np.unique(finite, return_index=True)
    reached = np.append(last[1:], len(finite)) / len(values)
    return [(float(places[0]), 0.0), *zip(places.tolist(), reached.tolist(), strict=True), (end, float(reached[-1]))]


def _gap(comparison: Comparison, record: Record) -> float:
    gap = comparison.gap(record)
    return _reached(record, comparison.excess(record) if gap is None else gap)


def _reached(record: Record, distance: float | None) -> float:
    return 0.0 if record.infeasible else math.inf if distance is None else distance
