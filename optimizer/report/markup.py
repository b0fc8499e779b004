"""Functions that build the HTML elements of report pages.

The function `text` escapes all strings, so that no string from a file is interpreted as markup.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from specopt.models.fields import escaped

MAX_ROWS = 500
"""Maximum number of rows that a table shows, which keeps pages small.

The caption states the total number of rows.
"""

MAX_OPEN_ROWS = 20
"""Maximum number of rows of a table that is initially expanded."""

DIGITS = 5
"""Number of significant digits with which numbers are displayed."""


def text(value: object) -> str:
    """Convert a value to an HTML-escaped string.

    Control characters become visible escape sequences.
    """
    return html.escape(escaped(str(value)))


def paragraph(words: str, kind: str = "") -> str:
    """Return an HTML paragraph, whose CSS class is `kind` unless `kind` is empty."""
    return f"<p{f' class={kind}' if kind else ''}>{text(words)}</p>"


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Return an HTML definition list of names and values."""
    rows = "".join(
        f"<div><dt>{text(name)}</dt><dd>{text(shown(value))}</dd></div>" for name, value in pairs
    )
    return f"<dl>{rows}</dl>"


def spaced(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a mapping with underscores in the names replaced by spaces."""
    return {name.replace("_", " "): value for name, value in values.items()}


def items(words: Iterable[str]) -> str:
    """Return sentences as an HTML list, or an empty string if there are no sentences."""
    found = "".join(f"<li>{text(one)}</li>" for one in words)
    return f"<ul>{found}</ul>" if found else ""


def section(title: str, *parts: str) -> str:
    """Return an HTML section that consists of a headline and other parts."""
    return f"<section><h2>{text(title)}</h2>{''.join(parts)}</section>"


def folded(title: str, content: str, is_open: bool = False) -> str:
    """Return an HTML element that the reader can expand and collapse."""
    return f"<details{' open' * is_open}><summary>{text(title)}</summary>{content}</details>"


def table(rows: Sequence[Mapping[str, Any]], caption: str) -> str:
    """Return a sortable HTML table with right-aligned numbers.

    A cell contains a dash if the row lacks a value for its column.
    """
    if not rows:
        return paragraph(f"{caption}: none.")
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[row.get(name) for name in names] for row in rows]
    numeric = [all(map(_is_number, column)) for column in zip(*cells, strict=True)]
    head = "".join(
        f"<th scope=col{' class=n' * flush}>{text(name)}</th>"
        for name, flush in zip(names, numeric, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(_cell(value, flush) for value, flush in zip(row, numeric, strict=True))
        + "</tr>"
        for row in cells[:MAX_ROWS]
    )
    cut = f" (the first {MAX_ROWS:,} of {len(rows):,} rows)" if len(rows) > MAX_ROWS else ""
    return (
        "<div class=scroll tabindex=0 role=region"
        f" aria-label='{text(caption)}'><table><caption>{text(caption + cut)}"
        f"</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def data(value: Any) -> str:
    """Convert a value to JSON that cannot end an enclosing script element."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")


def shown(value: object) -> str:
    """Format a value as a string.

    Numbers are shown with few digits, and None is shown as a dash.
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-" if value is None or value != value else str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)


def _cell(value: Any, flush: bool) -> str:
    if not flush:
        return f"<td>{text(shown(value))}</td>"
    key = "" if value is None else f" data-value='{text(value)}'"
    return f"<td class=n{key}>{text(shown(value))}</td>"


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
