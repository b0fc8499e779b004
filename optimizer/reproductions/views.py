"""What became of statements, for people: lines in the terminal, a page and its data, two kinds of pictures."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from specopt.models.errors import InvalidInput
from specopt.models.files import csv_text, write_text
from specopt.reproductions.experiment import Curves, Finding, Run
from specopt.reproductions.ledger import Assumption, Paper
from specopt.views.chart import Chart, Picture, category, looks, quantity
from specopt.views.terminal import table

_ROWS = 16  # of a map, the ones without a printed number first


def number(value: Any) -> str:
    """Return a printed value, or ours, in a few characters."""
    if isinstance(value, list):
        return " to ".join(number(one) for one in value)
    return f"{value:.4g}" if isinstance(value, int | float) else "" if value is None else str(value)


def share(entry: Mapping[str, Any]) -> str:
    """Return in how much of its box a statement holds; without a box whether it does."""
    if entry.get("share") is not None:
        return f"{100 * entry['share']:.0f} %"
    return {True: "yes", False: "no"}.get(entry.get("holds", ""), "")


def cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a row of a table: item, statement, printed, ours, share, and what decides it."""
    said = f"{entry['place']}: {entry['statement']}"
    verdict = share(entry) or entry["status"].replace("-", " ")
    why = entry.get("split") or entry.get("test") or entry.get("reason", "")
    unit = entry.get("unit", "")
    return entry["item"], said, number(entry["printed"]), f"{number(entry.get('ours'))} {unit}".strip(), verdict, why


HEAD = ("item", "statement", "printed", "ours", "holds in", "decided by, tested by, or why not")


def print_entries(entries: Iterable[Mapping[str, Any]], out: Console) -> None:
    """Print statements, a line or two each."""
    for entry in entries:
        item, said, printed, ours, verdict, why = cells(entry)
        good = entry.get("holds", entry["status"] == "proved")
        colour = "green" if good else "yellow" if entry["status"] == "not-attempted" else "red"
        out.print(Text.assemble((item, "bold"), f"  {said}: ", (verdict, colour)), soft_wrap=True)
        numbers = "; ".join(f"{word} {value}" for word, value in (("printed", printed), ("here", ours)) if value)
        if numbers or why:
            out.print(Text("  " + "; ".join(part for part in (numbers, why) if part), style="dim"), soft_wrap=True)


def print_counts(papers: Sequence[Paper], entries: Sequence[Mapping[str, Any]], out: Console) -> None:
    """Print how many statements of each paper have which status, and of how many the default agrees."""
    statuses = list(dict.fromkeys(entry["status"] for entry in entries))
    view = table("paper", "statements", *statuses, "hold by default", left=1)
    for paper in papers:
        mine = [entry for entry in entries if entry["paper"] == paper.name]
        counted = [sum(entry["status"] == status for entry in mine) for status in statuses]
        tried = [entry for entry in mine if "holds" in entry]
        held = f"{sum(entry['holds'] for entry in tried)} of {len(tried)}"
        view.add_row(paper.name, str(len(mine)), *map(str, counted), held)
    out.print(view)


def make_folder(folder: Path) -> None:
    """Make a folder if need be, and see that files can be written to it.

    Raises
    ------
    InvalidInput
        If they cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise InvalidInput(f"{folder}: cannot be made ({getattr(error, 'strerror', None) or error})") from None
    if not os.access(folder, os.W_OK):
        raise InvalidInput(f"{folder}: cannot be written to (no permission)")


def write_run(run: Run, folder: Path, *, pictures: bool = True) -> None:
    """Write the sampled points of an experiment, and then its pictures: its map, and the figures' lines.

    Raises
    ------
    InvalidInput
        If a file cannot be written.
    MissingDependency
        If pictures need vl-convert-python; the points are written all the same.
    """
    if run.points:
        columns = {one.said.id: one.values.tolist() for one in run.findings}
        rows = zip(*columns.values(), strict=True)
        body = ((*point.values(), *row) for point, row in zip(run.points, rows, strict=True))
        write_text(folder / f"{run.name}.csv", csv_text([(*run.points[0], *columns), *body]))
    if pictures:
        drawn = {f"map-{run.name}": draw_map(run)} if run.points else {}
        for name, picture in (drawn | {name: draw_curves(name, one) for name, one in run.curves.items()}).items():
            picture.save(folder / f"{file_name(name)}.png")


def file_name(name: str) -> str:
    """Return a name without what a shell or a link would have to quote."""
    return re.sub(r"[^\w.-]+", "-", name)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    for row in (head, ("---",) * len(head), *rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def assumption_cells(one: Assumption) -> tuple[str, str, str, str]:
    """Return a row of a table: name, default, range and reason."""
    plausible = ", ".join(map(str, one.choices)) or f"{number(one.low)} to {number(one.high)}"
    return one.name, number(one.default), plausible, one.reason


def pictures_of(runs: Iterable[Run], folder: Path) -> list[str]:
    """Return the names of the pictures that were drawn of runs."""
    names = [name for run in runs for name in (f"map-{run.name}", *map(file_name, run.curves))]
    return [f"{name}.png" for name in names if (folder / f"{name}.png").exists()]


def page(title: str, entries: Sequence[Mapping[str, Any]], runs: Sequence[Run], pictures: Iterable[str]) -> str:
    """Return a page of Markdown: statements, assumptions, pictures."""
    used = {one.name: one for run in runs for one in run.box}
    lines = [f"# {title}", "", *markdown(HEAD, map(cells, entries))]
    if used:
        lines += ["", *markdown(("assumption", "default", "range", "reason"), map(assumption_cells, used.values()))]
    for name in pictures:
        lines += ["", f"![{name.removesuffix('.png')}]({name})"]
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------------- pictures


def draw_curves(name: str, of: Curves) -> Picture:
    """Return the lines of a figure."""
    rows = [
        {"line": label, of.x: at, of.y: value}
        for label, line in of.lines.items()
        for at, value in zip(of.at, line, strict=True)
    ]
    scale = {"scale": {"zero": False}}
    encoding = {"x": quantity(of.x, **scale), "y": quantity(of.y, **scale), **looks("line", list(of.lines))}
    spec = {"mark": {"type": "line", "strokeWidth": 1.5, "point": len(of.at) < 30}, "encoding": encoding}
    return Picture([Chart(title=name, rows=rows, spec=spec)], width=480)


def draw_map(run: Run) -> Picture:
    """Return where statements hold: shares of the box, and the two most open ones over their deciding assumptions."""
    found = sorted(run.findings, key=lambda one: one.said.printed is not None)[:_ROWS]
    share_ = "share of the box of assumptions"
    bars = {
        "height": 24 * len(found),
        "mark": "bar",
        "encoding": {
            "y": category("statement", title=None, axis={"labelLimit": 300}),
            "x": quantity(share_, scale={"domain": [0, 1]}),
        },
    }
    rows = [{"statement": one.said.id, share_: one.share or 0.0} for one in found]
    open_ones = sorted((one for one in found if one.deciding), key=lambda one: abs((one.share or 0.0) - 0.5))[:2]
    shares = Chart(title=f"{run.name}: holds in", rows=rows, spec=bars)
    charts = [shares, *(_scatter(run, one) for one in open_ones)]
    return Picture(charts, columns=len(charts), width=340)


def _scatter(run: Run, found: Finding) -> Chart:
    """Return the sampled points over the assumptions that decide most; a single one stands over the next in the box."""
    names = [name for name, _ in found.deciding[:2]]
    names += [one.name for one in run.box if one.name not in names][: 2 - len(names)]
    box = {one.name: one for one in run.box}
    axes = [_axis(run, box[name]).tolist() for name in names]
    rows = [
        {"x": x, "y": y, "statement": "holds" if found.said.agrees(value) else "fails"}
        for x, y, value in zip(axes[0], axes[-1], found.values.tolist(), strict=True)
    ]
    colours = {"domain": ["holds", "fails"], "range": ["var(--series-0)", "var(--series-1)"]}
    encoding = {
        "x": quantity("x", title=_words(box[names[0]]), scale={"zero": False}),
        "y": quantity("y", title=_words(box[names[-1]]), scale={"zero": False}),
        "color": category("statement", title=None, scale=colours),
    }
    spec = {"mark": {"type": "point", "filled": True, "size": 40}, "encoding": encoding}
    return Chart(title=found.said.id, rows=rows, spec=spec)


def _axis(run: Run, one: Assumption) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return where the points lie: values, or for choices their places, scattered within a band each."""
    column = run.places[:, [other.name for other in run.box].index(one.name)]
    if one.choices or one.log:
        return np.asarray(column * (len(one.choices) or 1))
    return np.array([float(point[one.name]) for point in run.points])


def _words(one: Assumption) -> str:
    if one.choices:
        return f"{one.name}: {' | '.join(map(str, one.choices))}"
    return f"{one.name}: {one.low:g} to {one.high:g}, log" if one.log else one.name
