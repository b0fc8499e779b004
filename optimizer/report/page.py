"""Self-contained HTML pages, which can be read without scripts.

Scripts only add sorting and interactive charts. Each chart is drawn twice from the same
description: as SVG, and by the JavaScript bundle that the chart library provides. Without that
library, tables replace the charts. A page loads nothing from other files or servers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

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
    """A report page, before it is written as HTML.

    Parameters
    ----------
    title
        Headline of the page.
    lead
        Most important sentences, shown below the headline.
    body
        Sections of the page as HTML; see `markup`.
    sources
        Files from which the page was made.
    good
        Whether the lead is marked as good (True), marked as bad (False) or not marked (None).
    row
        Row for this page in the table of a page that combines several results.
    noted
        Existing problem files to which the results refer.
    """

    title: str
    lead: Sequence[str]
    body: Sequence[str]
    sources: Sequence[str] = field(default=())
    good: bool | None = None
    row: Mapping[str, Any] = field(default_factory=dict)
    noted: Sequence[Path] = field(default=())


def can_draw() -> bool:
    """Return whether the library that renders charts is installed."""
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        return False
    return True


def has_charts(html: str) -> bool:
    """Return whether a page contains charts or the tables that replace charts."""
    return "<figure>" in html


def figure(chart: Chart, is_summary: bool = False) -> str:
    """Return HTML for a chart together with a table of its data.

    The table is initially collapsed, unless it is short and either the chart cannot be drawn or the
    rows are a summary.
    """
    described = chart.to_dict()
    rows = described["data"]["values"]
    if not rows:
        return markup.paragraph(f"{chart.title}: nothing to show.")
    caption = f"<strong>{markup.text(chart.title)}</strong>{markup.text(chart.note)}"
    draws = can_draw()
    table = markup.folded(
        "The figures as a table",
        markup.table(rows, chart.title),
        len(rows) <= markup.MAX_OPEN_ROWS and (is_summary or not draws),
    )
    if not draws:
        return f"<figure><figcaption>{caption}</figcaption>{table}</figure>"
    spec = {**BASE, "autosize": {"type": "fit-x", "contains": "padding"}, **described}
    return (
        f"<figure><figcaption>{caption}</figcaption><div"
        f" class=plot>{draw({**spec, 'width': _WIDTH}, 'svg')}</div>"
        f"<script type='application/json'>{markup.data({**spec, 'width': 'container'})}</script>"
        f"{table}</figure>"
    )


def article(page: Page) -> str:
    """Return HTML that includes a page as a part of another page.

    Headlines are moved down one level.
    """
    body = "".join(page.body).replace("<h2>", "<h3>").replace("</h2>", "</h3>")
    return f"<article>{_head(page, 'h2')}{body}</article>"


def to_html(page: Page) -> str:
    """Return a complete HTML document for a page."""
    from importlib.metadata import version

    main = "".join(page.body)
    made = (
        f"Made by specopt {version('specopt')}"
        + (f" from {', '.join(page.sources)}" if page.sources else "")
        + "."
    )
    footer, scripts = [made], [_resource("page.js")]
    if has_charts(main):
        draws = can_draw()
        footer.append(_NOTICE if draws else f"Charts are replaced by tables: {MISSING}.")
        scripts[:0] = [_bundle()] if draws else []
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
            f"<header>{_head(page, 'h1')}</header>",
            f"<main>{main}</main>",
            f"<footer>{''.join(map(markup.paragraph, footer))}</footer>",
            *(f"<script>{script}</script>" for script in scripts),
            "</body>",
            "</html>",
            "",
        )
    )


def _head(page: Page, level: str) -> str:
    kind = {None: "lead", True: "'lead good'", False: "'lead bad'"}[page.good]
    first, *others = page.lead
    lead = markup.paragraph(first, kind) + "".join(map(markup.paragraph, others))
    return f"<{level}>{markup.text(page.title)}</{level}>{lead}"


GLOBALS = "window.vegaEmbed = vegaEmbed; window.vega = vega; window.vegaLite = vegaLite;"
"""JavaScript code that exports the names that the script of the page uses."""


@cache
def _bundle() -> str:
    import vl_convert

    bundle = vl_convert.javascript_bundle(GLOBALS)
    return bundle.replace("</script", "<\\/script")


def _resource(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
