"""Charts of reports: what is drawn, as a Vega-Lite description, over rows that are shown as a table as well.

The keys of rows are what people read: headers of the table, titles of axes, names in tooltips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Spec = Mapping[str, Any]

MOST_MARKS = 1500
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


def points(title: str, note: str, rows: Sequence[Row], **encoding: Any) -> Chart:
    """Return points by their Vega-Lite encoding: as many as browsers draw quickly, and a note of what is left out."""
    left_out = f" The first {MOST_MARKS:,} of {len(rows):,}." if len(rows) > MOST_MARKS else ""
    mark = {"type": "point", "filled": True, "size": 60, "opacity": 0.75, "tooltip": {"content": "data"}}
    return Chart(title=title, note=note + left_out, rows=rows[:MOST_MARKS], spec={"mark": mark, "encoding": encoding})


def weight(name: str, largest: int = 300) -> dict[str, Any]:
    """Return the encoding of a column as the size of points."""
    return quantity(name, scale={"range": [largest / 10, largest]}, legend=None)


def timeline(
    title: str, note: str, rows: Sequence[Row], *, lane: str, colour: Mapping[str, Any], axis: str, closest: int
) -> Chart:
    """Return bars in lanes over time, with sliders to look closer.

    Parameters
    ----------
    title, note
        As of any chart.
    rows
        With "begin (s)", "end (s)" and "seconds".
    lane
        The column that tells the lanes apart.
    colour
        The encoding of the colours.
    axis
        What time is counted from.
    closest
        How many times closer one can look.
    """
    end = max(row["end (s)"] for row in rows)
    start = f"place * ({end!r} - {end!r} / zoom)"
    ends = {"domainMin": {"expr": start}, "domainMax": {"expr": f"{start} + {end!r} / zoom"}, "nice": False}
    wide = f"datum.seconds * zoom > {end / 400!r}"  # the edges of a sliver would hide it
    return Chart(
        title=title,
        note=f"{note} Zoom in, then move the place.",
        rows=rows,
        spec={
            "height": 36 * len({row[lane] for row in rows}),
            "params": [_slider("zoom", 1, 1, closest, 1), _slider("place", 0, 0, 1, 0.002)],
            "mark": {"type": "bar", "clip": True, "stroke": "var(--paper)", "tooltip": {"content": "data"}},
            "encoding": {
                "y": category(lane, title=None, axis={"domain": False, "ticks": False}),
                "x": quantity("begin (s)", title=axis, scale=ends),
                "x2": {"field": "end (s)"},
                "strokeWidth": {"condition": {"test": wide, "value": 0.6}, "value": 0},
                "color": colour,
            },
        },
    )


def _slider(name: str, value: float, least: float, most: float, step: float) -> dict[str, Any]:
    bind = {"input": "range", "min": least, "max": most, "step": step, "name": f"{name} "}
    return {"name": name, "value": value, "bind": bind}
