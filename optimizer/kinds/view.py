"""Views, which define how plans for each kind of problem are printed and drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from specopt.console.terminal import Console, line
from specopt.kinds import kind_of
from specopt.kinds.chart import Chart
from specopt.models.problem import Plan, Problem

MAX_ITEMS = 20
"""Maximum number of entries to print for a list."""

MAX_CHARACTERS = 240
"""Maximum number of characters to print for a field."""


def field_lines(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a pair (name, string) for each field. Strings that are too long are truncated."""
    lines = []
    for name, value in fields.items():
        text = str(value)
        if isinstance(value, list):
            shown = " ".join(
                f"{item:g}" if isinstance(item, float) else str(item) for item in value[:MAX_ITEMS]
            )
            text = shown if len(value) <= MAX_ITEMS else f"{shown} ... ({len(value):,} in total)"
        if len(text) > MAX_CHARACTERS:
            text = text[: MAX_CHARACTERS - 4] + " ..."
        lines.append((name.replace("_", " "), text))
    return lines


def print_fields(problem: Problem, plan: Plan, out: Console) -> None:
    """Print a plan of any kind, with one line per field."""
    for name, text in field_lines(plan.to_dict()):
        line(out, name, text)


@dataclass(frozen=True, kw_only=True)
class View:
    """Functions that print and draw plans for one kind of problem.

    Parameters
    ----------
    print_plan
        Function that prints a plan for a problem.
    columns
        Additional columns in tables of results. Each key is the header of a column, and each value
        is a function that maps a plan to the entry in that column.
    charts
        Function that maps a problem and a plan to the charts to show on a page; None if there are
        no charts.
    """

    print_plan: Callable[[Any, Any, Console], None] = print_fields
    columns: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)
    charts: Callable[[Any, Any], Iterable[Chart]] | None = None


def view_of(kind: Problem | str) -> View:
    """Return the view for a kind of problem. Its module is loaded on demand."""
    module = kind_of(kind).view
    if module is None:
        return View()
    view = import_module(module).VIEW
    assert isinstance(view, View), f"{module}.VIEW"
    return view
