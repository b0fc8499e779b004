"""The command `specopt schema`, which prints the JSON Schema or the fields of a kind of problem."""

from __future__ import annotations

from specopt.commands.shared import Output, argument, check_target, hand_over, option
from specopt.models.errors import InvalidInput


def schema(
    kind: str = argument("KIND", "A kind of problem."),
    format_: str = option(
        "json|table", "JSON Schema, or a table of the fields.", "--format", default="json"
    ),
    output: Output = None,
) -> None:
    """Print the JSON Schema of a kind of problem, or a table of its fields.

    Editors can complete and check problem files whose "$schema" refers to the file written with -o.
    """
    from specopt.kinds import kind_of
    from specopt.models.files import json_text

    check_target(output)
    if format_ not in ("json", "table"):
        raise InvalidInput(f"--format: expected json or table, got {format_!r}")
    found = kind_of(kind).problem.json_schema()
    if format_ == "table":
        from specopt.views.schema import table_text

        text = table_text(found)
    else:
        text = json_text(found, indent=1)
    hand_over(text, output)
