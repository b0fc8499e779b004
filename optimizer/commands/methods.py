"""The command `specopt methods`, which lists methods for a problem, a kind or all kinds."""

from __future__ import annotations

from pathlib import Path

from specopt.commands.shared import AsJson, argument, console, print_json, read_problem


def methods(
    kind: str | None = argument(
        "[KIND|FILE]", "Only methods for this kind, or for the problem in a file.", None
    ),
    as_json: AsJson = False,
) -> None:
    """List the methods with their conditions, guarantees and complexity."""
    from specopt.api.solve import methods as methods_of
    from specopt.kinds import kind_of
    from specopt.views.methods import method_entry, print_methods

    problem = read_problem(Path(kind)) if kind is not None and Path(kind).is_file() else None
    found = methods_of(problem or (None if kind is None else kind_of(kind).problem))
    entries = [method_entry(method, problem) for method in found]
    if as_json:
        print_json(entries)
    else:
        print_methods(entries, console())
