"""Charts of reports: what is drawn, as a Vega-Lite description, over rows that are shown as a table as well.

The keys of rows are what people read: headers of the table, titles of axes, names in tooltips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Spec = Mapping[str, Any]

MOST_MARKS = 3000
"""Marks of a chart: browsers stay quick."""

SERIES = 8
"""Colours of the page, and with the dashes three times as many looks."""

DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 3), (2, 2))


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A picture over rows.

    Parameters
    ----------
    title
        What it shows.
    rows
        The data, all with the same keys.
    spec
        Vega-Lite without data and width: `mark` and `encoding`, or `layer`, and what else it takes.
    note
        What a reader should know.
    """

    title: str
    rows: Sequence[Row]
    spec: Spec
    note: str = ""


def quantity(name: str, **more: Any) -> dict[str, Any]:
    """Return the encoding of a column of numbers."""
    return {"field": name, "type": "quantitative", **more}


def category(name: str, **more: Any) -> dict[str, Any]:
    """Return the encoding of a column of names, in the order of the rows."""
    return {"field": name, "type": "nominal", "sort": None, **more}


def looks(name: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return the encoding of lines by colour, and by dashes where there are more of them than colours."""
    colours = [f"var(--series-{i % SERIES})" for i in range(len(values))]
    dashes = [DASHES[i // SERIES % len(DASHES)] for i in range(len(values))]
    return {
        "color": category(name, scale={"domain": values, "range": colours}),
        "strokeDash": category(name, scale={"domain": values, "range": dashes}),
    }


def zoomed(end: float, most: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return sliders that look at a part of an axis from 0 to its end, and the scale of that axis."""
    sliders = [
        {"name": "zoom", "value": 1, "bind": {"input": "range", "min": 1, "max": most, "step": 1, "name": "zoom "}},
        {"name": "place", "value": 0, "bind": {"input": "range", "min": 0, "max": 1, "step": 0.002, "name": "place "}},
    ]
    start = f"place * ({end!r} - {end!r} / zoom)"
    ends = {"domainMin": {"expr": start}, "domainMax": {"expr": f"{start} + {end!r} / zoom"}, "nice": False}
    return sliders, ends
