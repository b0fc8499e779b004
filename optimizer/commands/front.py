"""The command `specopt front`, which solves a problem for several values of a field."""

from __future__ import annotations

import json

from specopt.commands.shared import (
    AsJson,
    File,
    Gap,
    Method,
    MethodOptions,
    Output,
    Seconds,
    Seed,
    check_target,
    console,
    exit_code,
    print_json,
    read_problem,
    required,
)
from specopt.models.files import write_text


def front(
    file: File,
    field: str = required(
        None, "Field to vary; dots lead into nested fields and all parts of a list."
    ),
    values: str = required("V,V,...", "Values of the field, in this order."),
    method: Method = None,
    option: MethodOptions = None,
    time_limit: Seconds = None,
    gap: Gap = 0.0,
    seed: Seed = 0,
    as_json: AsJson = False,
    output: Output = None,
) -> int:
    """Show the optimum for several values of a field, each with a certificate.

    The output is a picture if its file name ends in .png, .pdf or .svg; otherwise, it is JSON.
    """
    from specopt import front as along
    from specopt.api.arguments import json_or_text, method_of
    from specopt.kinds.chart import FORMS, renderer

    check_target(output, file)
    draws = output is not None and output.suffix[1:].lower() in FORMS
    if draws:
        renderer()  # reports a missing library before the problems are solved
    problem = read_problem(file)
    chosen = method_of(problem, method, option or ()) if method is not None or option else None
    points = [json_or_text(part.strip()) for part in values.split(",") if part.strip()]
    found = along(
        problem, field, points, chosen, time_limit=time_limit, gap=gap, seed=seed, verbose=True
    )
    if output is not None and draws:
        found.plot().save(output)
    elif output is not None:
        write_text(output, json.dumps(found.to_dict()) + "\n")
    if as_json:
        print_json(found.to_dict())
    else:
        from specopt.views.what_if import print_front

        print_front(found, console())
    return max(map(exit_code, found.results))
