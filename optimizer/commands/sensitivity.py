"""The command `specopt sensitivity`, which shows the effect of one more unit of each resource."""

from __future__ import annotations

from specopt.commands.shared import (
    INTERRUPTED,
    AsJson,
    File,
    Gap,
    Method,
    MethodOptions,
    Seconds,
    Seed,
    console,
    exit_code,
    print_json,
    read_problem,
)


def sensitivity(
    file: File,
    method: Method = None,
    option: MethodOptions = None,
    time_limit: Seconds = None,
    gap: Gap = 0.0,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> int:
    """Show the effect of one more unit of each resource.

    The problem is solved again for each resource.
    """
    from specopt import sensitivity as differences
    from specopt.api.arguments import method_of

    problem = read_problem(file)
    chosen = method_of(problem, method, option or ())
    found = differences(problem, chosen, time_limit=time_limit, gap=gap, seed=seed, verbose=True)
    if as_json:
        print_json(found.to_dict())
    else:
        from specopt.views.what_if import print_sensitivity

        print_sensitivity(found, console())
    return INTERRUPTED if found.interrupted else exit_code(found.base)
