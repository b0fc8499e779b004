"""The command `specopt library`, which lists and exports the instances in the library and checks
submitted results against the best known results.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from specopt.api.library import line_of, load_saved, saved, saved_instance, submitted
from specopt.commands.shared import (
    AsJson,
    Output,
    argument,
    check_target,
    hand_over,
    print_json,
    read_result,
)
from specopt.console.streams import say
from specopt.models.files import to_json

library = typer.Typer(
    name="library",
    help="List the instance library, export instances, and submit better plans or bounds.",
    rich_markup_mode=None,
    add_completion=False,
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of an instance, KIND/FAMILY/LABEL.")
]


@library.command("list")
def list_(
    kind: str | None = argument("[KIND]", "A kind of problem; default: all kinds.", None),
    as_json: AsJson = False,
) -> None:
    """List the instances with their best known results."""
    from specopt.kinds import kind_of
    from specopt.views.library import entry, print_instances

    if kind is not None:
        kind_of(kind)
    found = [entry(saved_instance(name)) for name in saved(kind)]
    if as_json:
        print_json(found)
    else:
        print_instances(found)


@library.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show the origin of an instance, and the best known plan and bound."""
    from specopt.views.library import entry, print_instance

    found = entry(saved_instance(name))
    if as_json:
        print_json(found)
    else:
        print_instance(found)


@library.command("export")
def export_(name: Name, output: Output = None) -> None:
    """Write an instance as a problem file."""
    check_target(output)
    hand_over(to_json(load_saved(name).to_dict()), output)


@library.command()
def submit(
    name: Name,
    result: Path = argument("RESULT", "A result file with a plan, and optionally a bound."),
    output: Output = None,
) -> None:
    """Compare a result with the best known result of an instance.

    If the result is better, the updated library entry is written to the file given by -o.
    """
    import datetime

    check_target(output, result)
    found, said = submitted(name, read_result(result), datetime.date.today().isoformat())
    better = found.best != saved_instance(name).best
    hand_over("\n".join(said if better else [*said, "nothing to merge"]))
    if better and output is None:
        say("to submit it, write the line of the library with -o FILE")
    elif better:
        hand_over(line_of(found), output)
