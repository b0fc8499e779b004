"""Charts in Vega-Lite, which are drawn on HTML pages, in notebooks and in picture files.

The data of a chart are rows. Their keys appear as table headers, as axis titles and in tooltips.
Colours are specified by names from the palette, such as `var(--ink)`. Pages and notebooks use light
or dark colours, as chosen by the reader, whereas a picture file has fixed colours.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specopt.models.arguments import one_of
from specopt.models.extras import library
from specopt.models.files import write_bytes
from specopt.models.reading import StrPath

Row = Mapping[str, Any]
Spec = Mapping[str, Any]

MISSING = "pictures need vl-convert-python; run pip install 'specopt[plot]'"

FORMS = ("png", "pdf", "svg")
"""Supported formats of picture files."""

MAX_MARKS = 1500
"""Maximum number of marks in a chart. The limit keeps browsers responsive."""

PALETTE = {
    "paper": ("#ffffff", "#12161c"),
    "ink": ("#1c2430", "#e6eaf0"),
    "soft": ("#5a6675", "#a3aebb"),
    "line": ("#d7dde4", "#353e49"),
    "panel": ("#f5f7f9", "#1a2028"),
    "accent": ("#1f5f99", "#7db8f0"),
    "good": ("#1f7a45", "#6fcf97"),
    "bad": ("#b3261e", "#ff8a80"),
    "series-0": ("#1d71c9", "#6cadf2"),
    "series-1": ("#cf3e0e", "#ff9c70"),
    "series-2": ("#288046", "#73d096"),
    "series-3": ("#8f41eb", "#d55eea"),
    "series-4": ("#976707", "#e0b437"),
    "series-5": ("#0e7986", "#5fedda"),
    "series-6": ("#bf347b", "#f591bd"),
    "series-7": ("#616663", "#b3eac8"),
}
"""Palette, which maps the name of each colour to a pair (light variant, dark variant)."""

SERIES = 8
"""Number of line colours.

In combination with four dash patterns, there are four times as many line styles.
"""

DASHES = ((1, 0), (6, 3), (6, 3, 2, 3), (2, 2))
"""Dash patterns of lines. Each pattern lists the lengths of dashes and gaps, in pixels."""

BASE = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "config": {
        "background": "transparent",
        "font": "system-ui, Liberation Sans, Arial, sans-serif",
        "view": {"stroke": "transparent"},
        "axis": {
            "labelColor": "var(--soft)",
            "titleColor": "var(--ink)",
            "domainColor": "var(--soft)",
            "tickColor": "var(--soft)",
            "gridColor": "var(--line)",
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
        },
        "legend": {
            "labelColor": "var(--ink)",
            "titleColor": "var(--soft)",
            "orient": "bottom",
            "columns": 4,
            "labelFontSize": 12,
            "titleFontWeight": "normal",
            "symbolStrokeWidth": 2.5,
            "labelLimit": 280,
        },
        "title": {"color": "var(--ink)", "anchor": "start", "fontSize": 13},
        "range": {"category": [f"var(--series-{i})" for i in range(SERIES)]},
        "mark": {"color": "var(--series-0)"},
        "rule": {"color": "var(--soft)"},
        "text": {"color": "var(--ink)"},
        "customFormatTypes": False,
    },
}
"""Vega-Lite settings shared by all charts."""


def variables(selector: str) -> str:
    """Return CSS that defines the colours of the palette for elements that match a selector."""
    light, dark = (
        " ".join(f"--{name}: {both[i]};" for name, both in PALETTE.items()) for i in (0, 1)
    )
    return (
        f"{selector} {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ {selector} {{"
        f" {dark} }} }}\n"
    )


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart, which consists of data and a Vega-Lite description.

    Parameters
    ----------
    title
        Title of the chart.
    rows
        Data of the chart, as rows with the same keys.
    spec
        Vega-Lite description without the data and the width. It contains either `mark` and
        `encoding`, or `layer`. It may contain other properties.
    note
        Note for readers that is displayed with the chart.
    """

    title: str
    rows: Sequence[Row]
    spec: Spec
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the Vega-Lite description, including the data but not the width.

        Numbers are rounded to six significant digits; NaN and infinity become null.
        """
        rows = [{name: _round(value) for name, value in row.items()} for row in self.rows]
        return {"description": self.title, "height": 260, **self.spec, "data": {"values": rows}}

    def _repr_html_(self) -> str:
        return Picture((self,))._repr_html_()


@dataclass(frozen=True)
class Picture:
    """A grid of charts, for a notebook or a file.

    Parameters
    ----------
    charts
        Charts in row-major order.
    columns
        Number of columns in the grid.
    width
        Width of each chart, in pixels.
    """

    charts: Sequence[Chart]
    columns: int = 1
    width: int = 720

    def to_dict(self) -> dict[str, Any]:
        """Return the picture as a Vega-Lite description."""
        looks = dict.fromkeys(("color", "strokeDash", "size"), "independent")
        parts = [
            {"title": chart.title, "width": self.width, **chart.to_dict()} for chart in self.charts
        ]
        # Vega-Lite expects sliders at the level of the grid, not at the level of a chart
        sliders = [one for part in parts for one in part.pop("params", ())]
        return {
            **BASE,
            "params": sliders,
            "background": "var(--paper)",
            "padding": 12,
            "columns": self.columns,
            "concat": parts,
            "resolve": {"scale": looks, "legend": looks},
        }

    def save(self, path: StrPath, *, dark: bool = False) -> None:
        """Write a PNG, PDF or SVG file, depending on the suffix. A failed write leaves no file.

        Raises
        ------
        InvalidInput
            If the suffix is not supported, or if the file cannot be written.
        MissingDependency
            If vl-convert-python is not installed.
        """
        form = one_of("the picture's format", Path(path).suffix[1:].lower(), FORMS)
        source = re.sub(
            r"var\(--([\w-]+)\)", lambda name: PALETTE[name[1]][dark], json.dumps(self.to_dict())
        )
        drawn = draw(source, form, **({"scale": 2.0} if form == "png" else {}))
        write_bytes(path, drawn if isinstance(drawn, bytes) else drawn.encode())

    def _repr_html_(self) -> str:
        style = variables(".specopt")
        picture = draw(self.to_dict(), "svg")
        return f"<div class=specopt><style>{style}</style>{picture}</div>"


def draw(spec: Spec | str, form: str, **options: Any) -> Any:
    """Render a Vega-Lite description as an image in the format "svg", "png" or "pdf".

    Raises
    ------
    MissingDependency
        If vl-convert-python is not installed.
    """
    return getattr(renderer(), f"vegalite_to_{form}")(spec, **options)


def renderer() -> Any:
    """Return the module `vl_convert`, which renders charts.

    Raises
    ------
    MissingDependency
        If vl-convert-python is not installed.
    """
    return library("vl_convert", MISSING)


def _round(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None


def time_unit(end: float) -> tuple[float, str]:
    """Return a suitable time unit for an axis that ends at `end` seconds.

    The result is a pair of the number of units per second and the name of the unit.
    """
    return (1.0, "s") if end >= 2.0 else (1e3, "ms") if end >= 2e-3 else (1e6, "µs")


def quantity(name: str, **more: Any) -> dict[str, Any]:
    """Return the Vega-Lite encoding for a numeric column with the given name."""
    return {"field": name, "type": "quantitative", **more}


def category(name: str, **more: Any) -> dict[str, Any]:
    """Return the Vega-Lite encoding for a column of categories, kept in the order of the rows."""
    return {"field": name, "type": "nominal", "sort": None, **more}


def looks(name: str, values: Sequence[Any], first: Sequence[Any] = ()) -> dict[str, Any]:
    """Return a Vega-Lite encoding that distinguishes lines by colour and dash pattern.

    `values` are the values of column `name`, one per line. Neighbouring lines differ in colour and
    dash pattern, and no two of up to 32 lines share both. Values in `first` have the same style in
    all charts that have the same `first`.
    """
    order = list(dict.fromkeys((*first, *values)))
    places = [order.index(value) for value in values]
    colours = [f"var(--series-{i % SERIES})" for i in places]
    dashes = [DASHES[(i + i // SERIES) % len(DASHES)] for i in places]
    return {
        "color": category(name, scale={"domain": values, "range": colours}),
        "strokeDash": category(name, scale={"domain": values, "range": dashes}),
    }


def rows_of(number: str, columns: Mapping[str, Any]) -> list[Row]:
    """Convert columns, which are arrays, to a list of rows.

    An additional column, whose name is `number`, contains the index of each row.
    """
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [
        {number: place, **dict(zip(columns, row, strict=True))} for place, row in enumerate(values)
    ]


def points(title: str, note: str, rows: Sequence[Row], **encoding: Any) -> Chart:
    """Return a scatter plot of rows with the given Vega-Lite encoding.

    If there are too many rows, only the first rows are plotted, and the note says so.
    """
    left_out = (
        f" Only the first {MAX_MARKS:,} of {len(rows):,} are shown."
        if len(rows) > MAX_MARKS
        else ""
    )
    mark = {"type": "point", "filled": True, "size": 60, "opacity": 0.75, "tooltip": TOOLTIP}
    return Chart(
        title=title, note=note + left_out, rows=rows[:MAX_MARKS], spec=layer(mark, **encoding)
    )


TOOLTIP = {"content": "data"}
"""Vega-Lite tooltip that shows all values in the row of a mark."""


def layer(mark: Spec | str, **encoding: Any) -> dict[str, Any]:
    """Return a chart layer that consists of a mark and its Vega-Lite encoding."""
    return {"mark": mark, "encoding": encoding}


def weight(name: str, largest: int = 300) -> dict[str, Any]:
    """Return a Vega-Lite encoding in which a column determines the size of the points.

    `largest` is the area of the largest point, in square pixels.
    """
    return quantity(name, scale={"range": [largest / 10, largest]}, legend=None)


def gantt(
    title: str,
    rows: Sequence[Row],
    *,
    lane: str,
    colour: Spec,
    axis: str,
    end: float,
    **more: Any,
) -> Chart:
    """Return a Gantt chart, which shows bars in lanes over time.

    Each row describes a bar and has the keys "begin (s)", "end (s)" and "seconds". The column
    `lane` assigns bars to lanes. `axis` is the title of the time axis, which ends at `end` seconds.
    `more` contains additional layers, which are drawn on top of the bars.
    """
    scale, unit = time_unit(end)
    ticks = {"labelExpr": f"format(datum.value * {scale!r}, '~g')", "grid": False}
    x = quantity(
        "begin (s)", title=f"{axis} ({unit})", scale={"domain": [0, end], "nice": False}, axis=ticks
    )
    bars = _bars(rows, lane, colour, x, f"datum.seconds > {end / 400!r}")
    height = bars.pop("height")
    return Chart(title=title, rows=rows, spec={"height": height, "layer": [bars, *more.values()]})


def timeline(
    title: str,
    note: str,
    rows: Sequence[Row],
    *,
    lane: str,
    colour: Spec,
    axis: str,
    closest: int,
) -> Chart:
    """Return a Gantt chart with sliders for zooming in by a factor of up to `closest`.

    The other parameters are as in `gantt`.
    """
    end = max(row["end (s)"] for row in rows)
    start = f"position * ({end!r} - {end!r} / zoom)"
    ends = {
        "domainMin": {"expr": start},
        "domainMax": {"expr": f"{start} + {end!r} / zoom"},
        "nice": False,
    }
    sliders = [_slider("zoom", 1, 1, closest, 1), _slider("position", 0, 0, 1, 0.002)]
    bars = _bars(
        rows,
        lane,
        colour,
        quantity("begin (s)", title=axis, scale=ends),
        f"datum.seconds * zoom > {end / 400!r}",
    )
    return Chart(
        title=title,
        note=f"{note} Zoom in, then move the position.",
        rows=rows,
        spec={"params": sliders, **bars},
    )


def _bars(rows: Sequence[Row], lane: str, colour: Spec, x: Spec, wide: str) -> dict[str, Any]:
    # outlines would hide very short bars
    bars = layer(
        {"type": "bar", "clip": True, "stroke": "var(--paper)", "tooltip": TOOLTIP},
        y=category(lane, title=None, axis={"domain": False, "ticks": False}),
        x=x,
        x2={"field": "end (s)"},
        strokeWidth={"condition": {"test": wide, "value": 0.6}, "value": 0},
        color=colour,
    )
    return {"height": 36 * len({row[lane] for row in rows}), **bars}


def _slider(name: str, value: float, low: float, high: float, step: float) -> dict[str, Any]:
    bind = {"input": "range", "min": low, "max": high, "step": step, "name": f"{name} "}
    return {"name": name, "value": value, "bind": bind}
