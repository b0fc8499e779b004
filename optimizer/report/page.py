"""Self-contained pages, whose text is in the HTML; scripts only add sorting and interactive charts.

Charts are drawn twice from one description: as SVG, and by the library's bundle in the page.
Without the library, tables replace charts. A page loads nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from specopt.kinds.chart import BASE, MISSING, Chart, draw, variables
from specopt.report import markup

_WIDTH = 900
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval';"
    " img-src data:"
)
_NOTICE = (
    "Charts by Vega, Vega-Lite and Vega-Embed, "
    "Copyright (c) University of Washington Interactive Data Lab, BSD-3-Clause."
)


@dataclass(frozen=True, kw_only=True)
class Page:
    """Content of a page.

    Parameters
    ----------
    title
        Headline of the page.
    lead
        Most important sentences.
    body
        HTML of the sections; see `markup`.
    sources
        Files from which the page was made.
    good
        Whether the lead is marked as good (True), bad (False) or neither (None).
    """

    title: str
    lead: Sequence[str]
    body: Sequence[str]
    sources: Sequence[str] = field(default=())
    good: bool | None = None


def can_draw() -> bool:
    """Return whether the library that draws charts is installed."""
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        return False
    return True


def figure(chart: Chart) -> str:
    """Return a chart with its rows as a table, which is closed if the chart is drawn."""
    described = chart.to_dict()
    rows = described["data"]["values"]
    if not rows:
        return markup.paragraph(f"{chart.title}: nothing to show.")
    caption = f"<strong>{markup.text(chart.title)}</strong>{markup.text(chart.note)}"
    table = markup.table(rows, chart.title)
    if not can_draw():
        return f"<figure><figcaption>{caption}</figcaption>{table}</figure>"
    spec = {**BASE, "autosize": {"type": "fit-x", "contains": "padding"}, **described}
    return (
        f"<figure><figcaption>{caption}</figcaption><div"
        f" class=plot>{draw({**spec, 'width': _WIDTH}, 'svg')}</div>"
        f"<script type='application/json'>{markup.data({**spec, 'width': 'container'})}</script>"
        f"{markup.folded('The figures as a table', table)}</figure>"
    )


def to_html(page: Page) -> str:
    """Return a page as HTML."""
    from importlib.metadata import version

    kind = {None: "lead", True: "'lead good'", False: "'lead bad'"}[page.good]
    first, *others = page.lead
    lead = markup.paragraph(first, kind) + "".join(map(markup.paragraph, others))
    made = (
        f"Made by specopt {version('specopt')}"
        + (f" from {', '.join(page.sources)}" if page.sources else "")
        + "."
    )
    draws = can_draw()
    footer = markup.paragraph(made) + markup.paragraph(
        _NOTICE if draws else f"{MISSING[0].upper()}{MISSING[1:]}."
    )
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
            f"<style>{variables(':root')}{_resource('page.css')}</style>",
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


GLOBALS = "window.vegaEmbed = vegaEmbed; window.vega = vega; window.vegaLite = vegaLite;"
"""Names of the library that the page's script uses."""


@cache
def _bundle() -> str:
    import vl_convert

    bundle = vl_convert.javascript_bundle(GLOBALS)
    return bundle.replace("</script", "<\\/script")


def _resource(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
