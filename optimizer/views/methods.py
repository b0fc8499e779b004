"""Display of methods, as JSON-compatible data and as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rich.console import Console
from rich.table import Table
from rich.text import Text

from specopt.api.plugins import distribution_of
from specopt.models.problem import Problem
from specopt.models.schema import summary_of
from specopt.solvers.auto import Auto
from specopt.solvers.method import Method


def method_entry(method: type[Method], problem: Problem | None = None) -> dict[str, Any]:
    """Return the properties of a method as JSON-compatible data.

    For a portfolio, the properties include its member methods. If `problem` is given, only those
    members that run on the problem are included.
    """
    hints = get_type_hints(method)
    return {
        "kind": method.solves.kind,
        "name": method.name,
        "distribution": distribution_of(method),
        "summary": summary_of(method),
        "source": method.source,
        "guarantee": method.guarantee,
        "complexity": method.complexity,
        "exact": method.exact,
        "max_size": method.max_size,
        "size_unit": method.size_unit,
        "takes": [condition.takes for condition in method.conditions()],
        "supports_warm_start": method.supports_warm_start,
        "requires": list(method.requires),
        "members": [member.name for member in _members(method, problem)],
        "options": [
            {"name": field.name, "type": _type_name(hints[field.name]), "default": field.default}
            for field in dataclasses.fields(method)
        ],
    }


def _members(method: type[Method], problem: Problem | None) -> Sequence[Method | type[Method]]:
    if not issubclass(method, Auto):
        return ()
    return method.order + method.instead if problem is None else method().members(problem)


def print_methods(entries: Sequence[dict[str, Any]], out: Console) -> None:
    """Print the properties of methods, grouped by kind of problem."""
    kind = None
    for entry in entries:
        if entry["kind"] != kind:
            kind = entry["kind"]
            out.print(Text(kind, style="bold"))
        title = Text(f"\n  {entry['name']}", style="bold cyan" if entry["exact"] else "bold")
        title.append(
            f"  {'exact' if entry['exact'] else 'heuristic'}",
            style="green" if entry["exact"] else "default",
        )
        out.print(title)
        options = ", ".join(f"{o['name']}={o['default']} ({o['type']})" for o in entry["options"])
        details = Table.grid(padding=(0, 2, 0, 0))
        details.add_column(min_width=13, no_wrap=True)
        details.add_column()
        for label, text in (
            ("", entry["summary"]),
            ("plug-in of", "" if entry["distribution"] == "specopt" else entry["distribution"]),
            ("source", entry["source"]),
            ("guarantee", entry["guarantee"]),
            ("complexity", entry["complexity"]),
            ("takes", "; ".join(entry["takes"]) or "every problem of its kind"),
            ("options", options),
            ("runs", ", ".join(entry["members"])),
        ):
            if text:
                details.add_row(Text(f"    {label}"), Text(str(text)))
        out.print(details)


def _type_name(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(str, get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(
            "none" if part is NoneType else _type_name(part) for part in get_args(hint)
        )
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
