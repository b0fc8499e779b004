"""Display of entries in the instance library, on the terminal and as JSON-compatible data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specopt.api.claims import every_plan_has
from specopt.api.library import SavedInstance
from specopt.console.terminal import console, line, percent, table
from specopt.models.problem import problem_type


def entry(instance: SavedInstance) -> dict[str, Any]:
    """Return the library entry for an instance as JSON-compatible data."""
    best = instance.best
    return {
        "name": instance.name,
        "kind": instance.kind,
        "size": instance.size,
        "version": instance.version,
        "source": instance.source or f"family {instance.family}, seed {instance.seed}",
        "parameters": instance.parameters,
        "problem_sha256": instance.problem_sha256,
        "objective": best.objective,
        "bound": best.bound,
        "gap": best.gap,
        "status": best.status,
        "plan_by": best.method,
        "bound_by": best.bound_method,
        "confirmed_by": list(best.confirmed_by),
        "date": best.date,
        "versions": best.versions,
    }


def print_instances(entries: Sequence[Mapping[str, Any]]) -> None:
    """Print a table of library entries, with one row per instance."""
    view = table("instance", "size", "version", "objective", "gap", "by", left=2)
    for wraps in (view.columns[0], view.columns[-1]):  # other columns are never truncated
        wraps.no_wrap, wraps.overflow = False, "fold"
    for one in entries:
        by = (
            one["plan_by"]
            if one["bound_by"] in (None, one["plan_by"])
            else f"{one['plan_by']}, {one['bound_by']}"
        )
        view.add_row(
            one["name"], one["size"], one["version"], f"{one['objective']:.6g}", _gap(one), by
        )
    console().print(view)


def print_instance(found: Mapping[str, Any]) -> None:
    """Print the library entry for an instance."""
    out, kind = console(), problem_type(found["kind"])
    for label, text in (
        ("instance", found["name"]),
        ("from", found["source"]),
        (
            "parameters",
            ", ".join(f"{name} {value}" for name, value in found["parameters"].items()) or "none",
        ),
        ("size, version", f"{found['size']}, {found['version']}"),
        (
            "best plan",
            f"{found['objective']:.9g}  {kind.objective_label}, by {found['plan_by']}",
        ),
        (
            "best bound",
            "none"
            if found["bound"] is None
            else f"{found['bound']:.9g}  {every_plan_has(kind)} this, by {found['bound_by']}",
        ),
        ("gap", _gap(found)),
        ("confirmed by", ", ".join(found["confirmed_by"]) or "no other method"),
        (
            "date, versions",
            ", ".join(
                [found["date"], *(f"{name} {one}" for name, one in found["versions"].items())]
            ),
        ),
    ):
        line(out, label, text)


def _gap(found: Mapping[str, Any]) -> str:
    if found["status"] == "optimal":
        return "proven"
    return "no bound" if found["gap"] is None else percent(found["gap"])
