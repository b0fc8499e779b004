"""What became of statements, for people: lines of text, rows of the pages' tables, points and
pictures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from papers.experiment import Curves, Finding, Run
from papers.ledger import Assumption, Paper, counts, portion
from specopt.kinds.chart import Chart, Picture, category, looks, quantity
from specopt.models.files import csv_text, write_text

_ROWS = 16  # of a map, the ones without a printed number first


def number(value: Any) -> str:
    """Return a printed value, or ours, in a few characters."""
    if isinstance(value, list):
        return " to ".join(number(one) for one in value)
    return f"{value:.4g}" if isinstance(value, int | float) else "" if value is None else str(value)


def share(entry: Mapping[str, Any]) -> str:
    """Return in how much of its box a statement holds, at how many points; without a box whether it
    does.
    """
    if entry.get("share") is not None:
        near = entry.get("near")
        more = (
            f"; within 10 % in {_portion(near)}, median {number(entry['median'])}" if near else ""
        )
        return _portion(entry) + more
    return {True: "yes", False: "no"}.get(entry.get("holds", ""), "")


def _portion(found: Mapping[str, Any]) -> str:
    low, high = (100 * end for end in found["interval"])
    return f"{100 * found['share']:.0f} % of {found['samples']} [{low:.0f} to {high:.0f} %]"


def summary(of: Paper, listed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentences on a paper, with the shares that its entries say in the place of their
    items.
    """
    known = {one["item"]: one for one in listed}
    return [
        re.sub(r"\{([^}]+)\}", lambda match: _portion(known[match[1]]), line) for line in of.summary
    ]


def cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a row of a table: item, statement, printed, ours, share, kind of check, and what
    decides it.
    """
    said = f"{entry['place']}: {entry['statement']}"
    verdict = share(entry) or entry["status"].replace("-", " ")
    why = "; ".join(
        entry[name] for name in ("split", "verdict", "test", "reason") if entry.get(name)
    )
    printed = ("at least " if "near" in entry else "") + number(entry["printed"])
    ours = f"{number(entry.get('ours'))} {entry.get('unit', '')}".strip()
    return entry["item"], said, printed, ours, verdict, entry.get("check", ""), why


HEAD = (
    "item",
    "statement",
    "printed",
    "ours",
    "holds in (exact 95 % interval)",
    "kind of check",
    "decided by, tested by, or why not",
)


def print_entry(entry: Mapping[str, Any]) -> None:
    """Print a statement in a line or two."""
    item, said, printed, ours, verdict, check, why = cells(entry)
    print(f"{item}  {said}: {verdict}")
    numbers = [f"{word} {value}" for word, value in (("printed", printed), ("here", ours)) if value]
    if parts := [part for part in (*numbers, check, why) if part]:
        print("  " + "; ".join(parts))


def count_rows(entries: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield how many statements of each paper, and of those on the real pair, came out how."""
    for name in dict.fromkeys(entry["paper"] for entry in entries):
        yield name, counts([entry for entry in entries if entry["paper"] == name])
    yield "on the real pair", counts(entries, real=True)


def print_counts(entries: Sequence[Mapping[str, Any]]) -> None:
    """Print how many statements of each paper came out how."""
    rows = [(name, *map(str, counted.values())) for name, counted in count_rows(entries)]
    table = [("paper", *counts(entries)), *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for first, *others in table:
        numbers = [one.rjust(width) for one, width in zip(others, widths[1:], strict=True)]
        print("  ".join((first.ljust(widths[0]), *numbers)))


def write_run(run: Run, folder: Path) -> None:
    """Write the sampled points of an experiment, and then its pictures: its map, and the figures'
    lines.
    """
    drawn = {name: draw_curves(name, one) for name, one in run.curves.items()}
    if run.points:
        columns = {one.said.id: one.values.tolist() for one in run.findings}
        rows = zip(*columns.values(), strict=True)
        body = ((*point.values(), *row) for point, row in zip(run.points, rows, strict=True))
        write_text(folder / f"{run.name}.csv", csv_text([(*run.points[0], *columns), *body]))
        drawn[f"map-{run.name}"] = draw_map(run)
    for name, picture in drawn.items():
        file_name = re.sub(r"[^\w.-]+", "-", name)
        picture.save(folder / f"{file_name}.png")


def assumption_cells(one: Assumption) -> tuple[str, str, str, str]:
    """Return a row of a table: name, default, range and reason."""
    plausible = ", ".join(map(str, one.choices)) or f"{number(one.low)} to {number(one.high)}"
    return one.name, number(one.default), plausible, one.reason


# ---------------------------------------------------------------------------- pictures


def draw_curves(name: str, of: Curves) -> Picture:
    """Return the lines of a figure, and crosses where the paper prints a value."""
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


def draw_map(run: Run) -> Picture:
    """Return where statements hold: shares of the box, and the two most open ones over their
    deciding assumptions.
    """
    found = sorted(run.findings, key=lambda one: one.said.printed is not None)[:_ROWS]
    share_ = "share of the box of assumptions, exact 95 % interval"
    rows = []
    for one in found:
        of = portion(one.held, len(one.values))
        rows.append(
            {
                "statement": one.said.id,
                share_: of["share"],
                "from": of["interval"][0],
                "to": of["interval"][1],
            }
        )
    spec = {
        "height": 24 * len(found),
        "encoding": {"y": category("statement", title=None, axis={"labelLimit": 300})},
        "layer": [
            {"mark": "bar", "encoding": {"x": quantity(share_, scale={"domain": [0, 1]})}},
            {
                "mark": {"type": "rule", "color": "var(--ink)", "strokeWidth": 2},
                "encoding": {"x": quantity("from", title=share_), "x2": {"field": "to"}},
            },
        ],
    }
    open_ones = [one for one in found if one.deciding]
    open_ones.sort(key=lambda one: abs(one.held / len(one.values) - 0.5))
    charts = [Chart(title=f"{run.name}: holds in", rows=rows, spec=spec)]
    charts += [_scatter(run, one) for one in open_ones[:2]]
    return Picture(charts, columns=len(charts), width=340)


def _scatter(run: Run, found: Finding) -> Chart:
    """Return the sampled points over the assumptions that decide most; a single one stands over the
    next in the box.
    """
    names = [name for name, _ in found.deciding[:2]]
    names += [one.name for one in run.box if one.name not in names][: 2 - len(names)]
    (x, across), (y, up) = (_axis(run, name) for name in (names[0], names[-1]))
    rows = [
        {"x": at, "y": over, "statement": "holds" if found.said.agrees(value) else "fails"}
        for at, over, value in zip(x, y, found.values.tolist(), strict=True)
    ]
    colours = {"domain": ["holds", "fails"], "range": ["var(--series-0)", "var(--series-1)"]}
    encoding = {
        "x": quantity("x", title=names[0], **across),
        "y": quantity("y", title=names[-1], **up),
        "color": category("statement", title=None, scale=colours),
    }
    spec = {"mark": {"type": "point", "filled": True, "size": 40}, "encoding": encoding}
    return Chart(title=found.said.id, rows=rows, spec=spec)


def _axis(run: Run, name: str) -> tuple[list[float], dict[str, Any]]:
    """Return where the points lie, choices scattered within a band each, and the axis."""
    place = [one.name for one in run.box].index(name)
    one = run.box[place]
    if not one.choices:
        scale = {"zero": False, "nice": False, "type": "log" if one.log else "linear"}
        return [float(point[name]) for point in run.points], {"scale": scale}
    count = len(one.choices)
    label = f"{json.dumps([*map(str, one.choices)])}[floor(datum.value)]"
    axis = {"values": [i + 0.5 for i in range(count)], "labelExpr": label, "grid": False}
    return (count * run.places[:, place]).tolist(), {"scale": {"domain": [0, count]}, "axis": axis}
