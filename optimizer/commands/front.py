"""`specopt front`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from specopt.commands.shared import (
    FOUND,
    INTERRUPTED,
    NOT_FOUND,
    AsJson,
    File,
    Gap,
    Method,
    MethodOptions,
    Output,
    Seconds,
    Seed,
    check_target,
    print_json,
    read_problem,
)
from specopt.models.errors import InvalidInput
from specopt.models.files import write_text

MAX_POINTS = 1000


def front(
    file: File,
    field: Annotated[str, typer.Option(help="What changes; dots lead into nested fields, and into all of a list.")],
    values: Annotated[str, typer.Option(metavar="V,V,...|LOW:HIGH:N", help="Of the field; LOW:HIGH:N are N numbers.")],
    method: Method = None,
    option: MethodOptions = None,
    time_limit: Seconds = None,
    gap: Gap = 0.0,
    seed: Seed = 0,
    as_json: AsJson = False,
    output: Output = None,
) -> int:
    """Show the optimum along a field, certified at every point.

    The output is a picture where its name ends in .png, .pdf or .svg, else what --json prints.
    """
    from specopt import front as along
    from specopt.api.arguments import method_of

    check_target(output, file)
    problem = read_problem(file)
    chosen = method_of(problem, method, option or ()) if method is not None or option else None
    found = along(problem, field, _values(values), chosen, time_limit=time_limit, gap=gap, seed=seed, verbose=True)
    if output is not None and output.suffix.lower() in (".png", ".pdf", ".svg"):
        found.plot().save(output)
    elif output is not None:
        write_text(output, json.dumps(found.to_dict()) + "\n")
    if as_json:
        print_json(found.to_dict())
    else:
        from specopt.views.front import print_front
        from specopt.views.terminal import console

        print_front(found, console())
    if found.interrupted:
        return INTERRUPTED
    return FOUND if all(result.plan is not None for result in found.results) else NOT_FOUND


def _values(text: str) -> list[Any]:
    """Return the values that a text lists: N numbers from LOW to HIGH, or JSON values, else texts, between commas."""
    parts = text.split(":")
    try:
        if len(parts) == 3:
            low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
            if 2 <= count <= MAX_POINTS:
                return [low + (high - low) * k / (count - 1) for k in range(count)]
    except ValueError:
        pass
    if len(parts) > 1:
        raise InvalidInput(f"--values: expected LOW:HIGH:N with N from 2 to {MAX_POINTS}, got {text!r}")
    return [_value(part.strip()) for part in text.split(",") if part.strip()]


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text
