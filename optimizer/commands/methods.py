"""`specopt methods`."""

from __future__ import annotations

from typing import Annotated

import typer

from specopt.commands.shared import AsJson, print_json


def methods(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help="Only this kind of problem.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the methods: what they solve, promise and cost."""
    from specopt.api.solve import methods as methods_of
    from specopt.kinds import kind_of
    from specopt.views.methods import method_entry, print_methods
    from specopt.views.terminal import console

    found = methods_of(None if kind is None else kind_of(kind).problem)
    entries = [method_entry(method) for method in found]
    if as_json:
        print_json(entries)
    else:
        print_methods(entries, console())
