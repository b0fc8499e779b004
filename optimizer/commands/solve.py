"""`specopt solve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    exit_code,
    number,
    print_json,
    read_problem,
    read_result,
    write,
)
from specopt.console.streams import say
from specopt.models.errors import InvalidInput


def solve(
    file: File,
    method: Method = None,
    option: MethodOptions = None,
    time_limit: Seconds = None,
    gap: Gap = 0.0,
    seed: Seed = 0,
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, help="Cores that an exact search may use.")
    ] = 1,
    memory_limit: Annotated[
        float,
        typer.Option(
            metavar="GB", parser=number, help="Memory that the method may hold, in 10^9 bytes."
        ),
    ] = 2.147483648,
    warm_start: Annotated[
        Path | None, typer.Option(metavar="RESULT", help="Start from this result.")
    ] = None,
    as_json: AsJson = False,
    output: Output = None,
) -> int:
    """Solve a problem and show or save the result."""
    from specopt.api.arguments import method_of
    from specopt.api.unasked import solve_beside

    check_target(output, file)
    problem = read_problem(file)
    earlier = None if warm_start is None else read_result(warm_start)
    if not memory_limit > 0.0:
        raise InvalidInput(f"--memory-limit: expected gigabytes > 0, got {memory_limit:g}")
    most = memory_limit * 1e9
    chosen = method_of(problem, method, option or (), most)
    result = solve_beside(
        problem,
        chosen,
        time_limit=time_limit,
        gap=gap,
        seed=seed,
        workers=workers,
        memory_limit=most,
        warm_start=earlier,
        verbose=True,
    )
    write(result, output)
    if as_json:
        print_json(result.to_dict())
    else:
        from specopt.console.terminal import console
        from specopt.views.result import print_result

        print_result(problem, result, console())
        if output is not None:
            say(f"written to {output}")
    return exit_code(result)
