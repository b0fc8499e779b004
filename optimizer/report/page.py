"""One self-contained page: what it says stands in its HTML, scripts only add sorting and charts to point at.

Charts are drawn twice from one description, as SVG here and by the same library's own bundle in the page. Without that
library their tables are shown; nothing on a page asks for anything from elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from specopt.report import markup
from specopt.views.chart import SERIES, Chart

MISSING = "charts need vl-convert-python: pip install 'specopt[report]'"

_WIDTH = 900
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data:"
_NOTICE = (
    "Charts by Vega, Vega-Lite and Vega-Embed, "
    "Copyright (c) University of Washington Interactive Data Lab, BSD-3-Clause."
)

_AXIS = {
    "labelColor": "var(--soft)", "titleColor": "var(--ink)", "domainColor": "var(--soft)", "tickColor": "var(--soft)",
    "gridColor": "var(--line)", "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
}  # fmt: skip
_CONFIG = {
    "background": "transparent",
    "font": "system-ui, Liberation Sans, Arial, sans-serif",
    "view": {"stroke": "transparent"},
    "axis": _AXIS,
    "legend": {
        "labelColor": "var(--ink)", "titleColor": "var(--soft)", "orient": "bottom", "columns": 4, "labelFontSize": 12,
        "titleFontWeight": "normal", "symbolStrokeWidth": 2.5, "labelLimit": 280,
    },
    "title": {"color": "var(--ink)"},
    "range": {"category": [f"var(--series-{i})" for i in range(SERIES)]},
    "mark": {"color": "var(--series-0)"},
    "rule": {"color": "var(--soft)"},
    "text": {"color": "var(--ink)"},
    "customFormatTypes": False,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page before it is written.

    Parameters
    ----------
    title
        Its headline.
    lead
        What matters most, in a sentence or a few.
    body
        HTML of its sections; see `markup`.
    sources
        The files that it was made from.
    good
        Whether the lead says that all is well; None: neither.
    """

    title: str
    lead: Sequence[str]
    body: Sequence[str]
    sources: Sequence[str] = field(default=())
    good: bool | None = None


def can_draw() -> bool:
    """Tell whether the library that draws charts is installed."""
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        return False
    return True


def figure(chart: Chart) -> str:
    """Return a chart with its rows as a table, folded away where the chart is drawn."""
    rows = [{name: _round(value) for name, value in row.items()} for row in chart.rows]
    if not rows:
        return markup.paragraph(f"{chart.title}: nothing to show.")
    caption = f"<strong>{markup.text(chart.title)}</strong>{markup.text(chart.note)}"
    table = markup.table(rows, chart.title)
    if not can_draw():
        return f"<figure><figcaption>{caption}</figcaption>{table}</figure>"
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": chart.title,
        "height": 260,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": _CONFIG,
        **chart.spec,
        "data": {"values": rows},
    }
    return (
        f"<figure><figcaption>{caption}</figcaption><div class=plot>{_svg({**spec, 'width': _WIDTH})}</div>"
        f"<script type='application/json'>{markup.data({**spec, 'width': 'container'})}</script>"
        f"{markup.folded('The figures as a table', table)}</figure>"
    )


def to_html(page: Page) -> str:
    """Return a page as HTML."""
    from specopt import __version__

    kind = {None: "lead", True: "'lead good'", False: "'lead bad'"}[page.good]
    first, *others = page.lead
    lead = markup.paragraph(first, kind) + "".join(map(markup.paragraph, others))
    made = f"Made by specopt {__version__}" + (f" from {', '.join(page.sources)}" if page.sources else "") + "."
    draws = can_draw()
    footer = markup.paragraph(made) + markup.paragraph(_NOTICE if draws else f"{MISSING[0].upper()}{MISSING[1:]}.")
    scripts = [*([_bundle()] if draws else []), _resource("page.js")]
    return "\n".join(
        (
            "<!DOCTYPE html>",
            "<html lang=en>",
            "<head>",
            "<meta charset=utf-8>",
            f'<meta http-equiv=Content-Security-Policy content="{_POLICY}">',
            "<meta name=viewport content='width=device-width, initial-scale=1'>",
            f"<title>{markup.text(page.title)}</title>",
            f"<style>{_resource('page.css')}</style>",
            "</head>",
            "<body>",
            f"<header><h1>{markup.text(page.title)}</h1>{lead}</header>",
            f"<main>{''.join(page.body)}</main>",
            f"<footer>{footer}</footer>",
            *(f"<script>{script}</script>" for script in scripts),
            "</body>",
            "</html>",
            "",
        )
    )


def _svg(spec: dict[str, Any]) -> str:
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(spec)
    return drawn


GLOBALS = "window.vegaEmbed = vegaEmbed; window.vega = vega; window.vegaLite = vegaLite;"
"""What a page's script finds of the library."""


@cache
def _bundle() -> str:
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(GLOBALS)
    return bundle.replace("</script", "<\\/script")


def _resource(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _round(value: Any) -> Any:
    """Return a value for a chart: numbers to a few digits, none that JSON does not know."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None
