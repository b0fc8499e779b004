"""`specopt import`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specopt.commands.shared import (
    Output,
    Parameters,
    Replacements,
    RuntimesFile,
    Seed,
    check_target,
    count,
    hand_over,
    measured,
    number,
)
from specopt.console.streams import say
from specopt.models.errors import InvalidInput

if TYPE_CHECKING:
    from specopt.instances.traces import Trace


def import_(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A file of requests: CSV or JSON lines.")],
    kind: Annotated[str, typer.Option("--as", metavar="KIND", help="serving-latency or verification-batch.")],
    tasks: Annotated[
        int | None, typer.Option(metavar="N", parser=count, help="Rows to take; default: all from the start on.")
    ] = None,
    start: Annotated[
        int | None, typer.Option(metavar="N", parser=count, help="First row, from 0; dropped ones do not count.")
    ] = None,
    from_seconds: Annotated[
        float | None, typer.Option(metavar="S", parser=number, help="Take what arrives from then on; first row: 0.")
    ] = None,
    to_seconds: Annotated[
        float | None, typer.Option(metavar="S", parser=number, help="Take what arrives before then.")
    ] = None,
    family: Annotated[
        str | None, typer.Option(metavar="F", help="Family of KIND that gives what no trace says.")
    ] = None,
    param: Parameters = None,
    seed: Seed = 0,
    runtimes: RuntimesFile = None,
    set_: Replacements = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", metavar="F", help="azure, burstgpt, mooncake, vidur or csv; default: recognised."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=NAME", help="A column of a CSV file; KEY: arrival, input, output, name."),
    ] = None,
    time_unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="Unit of arrivals in a CSV file: s, ms, us, ns or date.")
    ] = None,
    output: Output = None,
) -> None:
    """Make a problem from rows of a trace."""
    from specopt.api.arguments import pairs_of, parameters_of, with_fields
    from specopt.api.generate import from_trace, problem_from_trace
    from specopt.instances.traces import read_trace
    from specopt.models.files import to_json

    for path in (trace, runtimes):
        check_target(output, path)
    by_time = from_seconds is not None or to_seconds is not None
    if by_time and (start is not None or tasks is not None):
        raise InvalidInput("--from-seconds, --to-seconds: expected rows by time or by number, got both")
    if tasks == 0:
        raise InvalidInput("--tasks: expected an integer >= 1, got 0")
    name = from_trace(kind).family(family).name
    parameters = parameters_of(name, param or ())
    columns = pairs_of(column or (), "--column")
    read = read_trace(trace, format_, columns=columns, time_unit=time_unit, start=start or 0, rows=tasks)
    if by_time:
        low = 0.0 if from_seconds is None else from_seconds
        read = read.between(low, math.inf if to_seconds is None else to_seconds)
    problem = problem_from_trace(read, kind, name, seed=seed, **parameters)
    problem = with_fields(measured(problem, runtimes), set_ or ())
    say(_summary(read, kind, from_trace(kind).unused))
    hand_over(to_json(problem.to_dict()) + "\n", output)


def _summary(trace: Trace, kind: str, unused: str) -> str:
    reasons = ", ".join(f"{rows} with {reason}" for reason, rows in trace.dropped)
    dropped = f"{trace.dropped_rows} dropped" + (f" ({reasons})" if reasons else "")
    order = f", {trace.out_of_order} out of order and sorted" if trace.out_of_order else ""
    return (
        f"{trace.source} ({trace.format}): {trace.rows_read} rows read, {dropped}{order}; rows {trace.start} to "
        f"{trace.start + len(trace) - 1}, {trace.duration_seconds:g} s of arrivals, become a {kind} problem; not used: "
        f"{unused}"
    )
