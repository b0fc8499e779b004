"""`specopt schema`."""

from __future__ import annotations

from typing import Annotated

import typer

from specopt.commands.shared import print_json


def schema(kind: Annotated[str, typer.Argument(metavar="KIND", help="A kind of problem.")]) -> None:
    """Print the JSON Schema of a kind of problem."""
    from specopt.kinds import kind_of

    print_json(kind_of(kind).problem.json_schema())
