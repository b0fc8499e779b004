"""Views, which define how the plans of each kind of problem are printed and drawn."""

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
"""Maximum number of list entries to print."""

MAX_CHARACTERS = 240
"""Maximum number of characters to print per field."""


def field_lines(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the name and the text of each JSON-compatible field. Long texts are truncated."""
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
    """Functions that print and draw the plans of one kind of problem.

    Parameters
    ----------
    print_plan
        Function that prints a plan of a problem.
    columns
        Functions that map a plan to a value, by header of the additional table column that shows
        the value.
    charts
        Function of a problem and a plan that returns the charts of a page; None if there are no
        charts.
    """

    print_plan: Callable[[Any, Any, Console], None] = print_fields
    columns: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)
    charts: Callable[[Any, Any], Iterable[Chart]] | None = None


def view_of(kind: Problem | str) -> View:
    """Return the view for a kind of problem. The view's module is loaded on demand."""
    module = kind_of(kind).view
    if module is None:
        return View()
    view = import_module(module).VIEW
    assert isinstance(view, View), f"{module}.VIEW"
    return view
