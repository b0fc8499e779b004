"""Views of the ledger for readers: lines of text, tables, sampled points and pictures."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from papers.experiment import Curves, Run
from papers.ledger import CHECKS, ORIGINS, Paper, counts, entry
from specopt.kinds.chart import Chart, Picture, category, looks, quantity
from specopt.models.files import csv_text, write_text

Entry = Mapping[str, Any]

_MAX_ROWS = 30
"""Maximum number of rows in a chart; beyond it only orders, trends and the abstract are drawn."""

_FEW = 10
"""Statements that were computed at fewer points are drawn as empty circles."""


def number(value: Any) -> str:
    """Return a printed or a computed value in a few characters."""
    if isinstance(value, list):
        return " to ".join(number(one) for one in value)
    return f"{value:.4g}" if isinstance(value, int | float) else "" if value is None else str(value)


def verdict(entry: Entry) -> str:
    """Return the share of sampled assumptions for which a statement holds; without samples whether
    it holds, or its status.
    """
    if "share" in entry:
        near = entry.get("near")
        more = (
            f"; within 10 % in {_portion(near)}, median {number(entry['median'])}" if near else ""
        )
        return _portion(entry) + more
    if "holds" in entry:
        return "yes" if entry["holds"] else "no"
    if "instances" in entry:
        return f"held on {entry['instances']} instances"
    return str(entry["status"]).replace("-", " ")


def _portion(found: Entry) -> str:
    low, high = (100 * end for end in found["interval"])
    return f"{100 * found['share']:.0f} % of {found['samples']} points [{low:.0f} to {high:.0f} %]"


def summary(of: Paper, listed: Sequence[Entry]) -> list[str]:
    """Return the sentences on a paper with the recorded shares of statements."""
    known = {one["item"]: one for one in listed}
    return [
        re.sub(r"\{([^}]+)\}", lambda match: _portion(known[match[1]]), line) for line in of.summary
    ]


HEAD = (
    "statement",
    "printed",
    "ours",
    "holds if",
    "result",
    "kind of check",
    "explanation",
    "item",
)


def cells(entry: Entry) -> tuple[str, ...]:
    """Return a row of a table with the columns of `HEAD`."""
    notes = ("split", "verdict", "tolerance", "test", "reason")
    check = entry.get("check", "")
    return (
        f"{entry['place']}: {entry['statement']}",
        number(entry["printed"]),
        f"{number(entry.get('ours'))} {entry.get('unit', '')}".strip(),
        entry.get("criterion", ""),
        verdict(entry),
        "" if check == CHECKS[0] else check,
        "; ".join(entry[name] for name in notes if entry.get(name)),
        f"`{entry['item']}`",
    )


def print_entry(entry: Entry) -> None:
    """Print a statement in one or two lines."""
    said, printed, ours, criterion, found, *more = cells(entry)
    print(f"{entry['item']}  {said}: {found}")
    named = (("printed", printed), ("here", ours), ("holds if", criterion))
    parts = [f"{word} {value}" for word, value in named if value] + more[:-1]
    if any(parts):
        print("  " + "; ".join(filter(None, parts)))


def count_rows(entries: Sequence[Entry]) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the counts of the statements of each paper, of our checks and of those on the real
    pair.
    """
    for name in dict.fromkeys(one["paper"] for one in entries):
        yield name, counts([one for one in entries if one["paper"] == name])
    yield "our checks", counts(entries, ORIGINS[1])
    yield "on the real pair", counts(entries, ORIGINS[2])


def print_counts(entries: Sequence[Entry]) -> None:
    """Print the counts of `count_rows` as a table."""
    rows = [(name, *map(str, counted.values())) for name, counted in count_rows(entries)]
    table = [("paper", *counts(entries)), *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for first, *others in table:
        numbers = [one.rjust(width) for one, width in zip(others, widths[1:], strict=True)]
        print("  ".join((first.ljust(widths[0]), *numbers)))


def write_run(of: Paper, run: Run, folder: Path) -> None:
    """Write the sampled points of an experiment, the map of its statements and the lines of its
    figures.
    """
    drawn = {name: draw_curves(name, one) for name, one in run.curves.items()}
    if run.points:
        columns = {one.said.id: one.values.tolist() for one in run.findings}
        rows = zip(*columns.values(), strict=True)
        body = ((*point.values(), *row) for point, row in zip(run.points, rows, strict=True))
        write_text(folder / f"{run.name}.csv", csv_text([(*run.points[0], *columns), *body]))
        listed = [entry(of, one.said, one.to_dict()) for one in run.findings]
        drawn[f"map-{run.name}"] = draw_map(listed)
    for name, picture in drawn.items():
        file_name = re.sub(r"[^\w.-]+", "-", name)
        picture.save(folder / f"{file_name}.png")


# ---------------------------------------------------------------------------- pictures


def draw_curves(name: str, of: Curves) -> Picture:
    """Return the lines of a figure, with crosses at the printed values."""
    here = {label: zip(of.at, line, strict=True) for label, line in of.lines.items()}
    rows = [
        {"line": label, of.x: at, of.y: value, "from": source}
        for source, lines in (("here", here), ("printed", of.printed))
        for label, line in lines.items()
        for at, value in line
    ]
    scale = {"scale": {"zero": False}}
    marks = {
        "here": {"type": "line", "strokeWidth": 1.5, "point": len(of.at) < 30},
        "printed": {"type": "point", "shape": "cross", "size": 110, "filled": True},
    }
    spec = {
        "layer": [
            {"transform": [{"filter": f"datum.from == '{source}'"}], "mark": mark}
            for source, mark in marks.items()
        ],
        "encoding": {
            "x": quantity(of.x, **scale),
            "y": quantity(of.y, **scale),
            **looks("line", list(of.lines)),
        },
    }
    title = f"{name} (crosses: printed)" if of.printed else name
    return Picture([Chart(title=title, rows=rows, spec=spec)], width=480)


def draw_map(listed: Sequence[Entry]) -> Picture:
    """Return the share of sampled assumptions for which statements hold: those of the paper and,
    below, those on the real pair.
    """
    charts = []
    for origin, title in (
        (ORIGINS[0], "Statements of the paper"),
        (ORIGINS[2], "The same statements on the real pair"),
    ):
        found = [one for one in listed if one["origin"] == origin and "share" in one]
        tried = [one for one in found if one["check"] == CHECKS[0]] or found
        if len(tried) > _MAX_ROWS:
            title += ": orders, trends and the abstract"
            tried = [one for one in tried if one["printed"] is None or one["place"] == "Abstract"]
        if tried:
            charts.append(
                Chart(title=title, rows=list(map(_map_row, tried)), spec=_map_spec(tried))
            )
    return Picture(charts, width=300)


_SHARE = "share of sampled assumptions, exact 95 % interval"


def _map_row(entry: Entry) -> dict[str, Any]:
    said, printed, _, criterion, *_ = cells(entry)
    if printed:
        said += f" (printed: {printed} {entry.get('unit', '')}".rstrip() + ")"
    elif criterion != "above 0":
        said += f" (holds for {criterion})"
    points = f" ({entry['samples']} points)" if entry["samples"] < _FEW else ""
    low, high = entry["interval"]
    return {
        "statement": "|".join(textwrap.wrap(said + points, 62)),
        _SHARE: entry["share"],
        "from": low,
        "to": high,
        "fill": "var(--paper)" if points else "var(--series-0)",
    }


def _map_spec(listed: Sequence[Entry]) -> dict[str, Any]:
    lines = max(_map_row(one)["statement"].count("|") for one in listed) + 1
    label = {"labelLimit": 0, "labelExpr": "split(datum.label, '|')", "labelFontSize": 11}
    how = {"scale": {"domain": [0, 1]}, "axis": {"format": ".0%", "tickCount": 5}}
    interval = {"x": quantity("from", title=_SHARE, **how), "x2": {"field": "to"}}
    fill = {"field": "fill", "type": "nominal", "scale": None}
    return {
        "height": {"step": 8 + 13 * lines},
        "encoding": {"y": category("statement", title=None, axis={**label, "grid": True})},
        "layer": [
            {"mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.5}, "encoding": interval},
            {
                "mark": {"type": "point", "size": 60, "stroke": "var(--series-0)", "opacity": 1},
                "encoding": {"x": quantity(_SHARE, **how), "fill": fill},
            },
        ],
    }
