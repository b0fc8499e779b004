"""`specopt import`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specopt.commands.options import from_fields
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


@dataclass(frozen=True, kw_only=True)
class Import:
    """What `import` takes."""

    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A file of requests: CSV or JSON lines.")]
    kind: Annotated[str, typer.Option("--as", metavar="KIND", help="serving-latency or verification-batch.")]
    tasks: Annotated[
        int | None, typer.Option(metavar="N", parser=count, help="Rows to take; default: all from the start on.")
    ] = None
    start: Annotated[
        int | None, typer.Option(metavar="N", parser=count, help="First row, from 0; dropped ones do not count.")
    ] = None
    from_seconds: Annotated[
        float | None, typer.Option(metavar="S", parser=number, help="Take what arrives from then on; first row: 0.")
    ] = None
    to_seconds: Annotated[
        float | None, typer.Option(metavar="S", parser=number, help="Take what arrives before then.")
    ] = None
    family: Annotated[str | None, typer.Option(metavar="F", help="Family of KIND that gives what no trace says.")] = (
        None
    )
    param: Parameters = None
    seed: Seed = 0
    runtimes: RuntimesFile = None
    set_: Replacements = None
    format_: Annotated[
        str | None,
        typer.Option("--format", metavar="F", help="azure, burstgpt, mooncake, vidur or csv; default: recognised."),
    ] = None
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=NAME", help="A column of a CSV file; KEY: arrival, input, output, name."),
    ] = None
    time_unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="Unit of arrivals in a CSV file: s, ms, us, ns or date.")
    ] = None
    output: Output = None


@from_fields
def import_(given: Import) -> None:
    """Make a problem from rows of a trace."""
    from specopt.api.arguments import pairs_of, parameters_of, with_fields
    from specopt.api.generate import from_trace
    from specopt.instances.traces import read_trace
    from specopt.models.files import to_json

    for path in (given.trace, given.runtimes):
        check_target(given.output, path)
    by_time = given.from_seconds is not None or given.to_seconds is not None
    if by_time and (given.start is not None or given.tasks is not None):
        raise InvalidInput("--from-seconds, --to-seconds: expected rows by time or by number, got both")
    if given.tasks == 0:
        raise InvalidInput("--tasks: expected an integer >= 1, got 0")
    maker = from_trace(given.kind)
    name = maker.family(given.family).name
    parameters = parameters_of(name, given.param or ())
    columns = pairs_of(given.column or (), "--column")
    read = read_trace(
        given.trace, given.format_, columns=columns, time_unit=given.time_unit, start=given.start or 0, rows=given.tasks
    )
    if by_time:
        read = read.between(given.from_seconds or 0.0, math.inf if given.to_seconds is None else given.to_seconds)
    problem = maker.problem(read, name, seed=given.seed, **parameters)
    problem = with_fields(measured(problem, given.runtimes), given.set_ or ())
    say(_summary(read, given.kind, maker.unused))
    hand_over(to_json(problem.to_dict()) + "\n", given.output)


def _summary(trace: Trace, kind: str, unused: str) -> str:
    reasons = ", ".join(f"{rows} with {reason}" for reason, rows in trace.dropped)
    dropped = f"{trace.dropped_rows} dropped" + (f" ({reasons})" if reasons else "")
    order = f", {trace.out_of_order} out of order and sorted" if trace.out_of_order else ""
    return (
        f"{trace.source} ({trace.format}): {trace.rows_read} rows read, {dropped}{order}; rows {trace.start} to "
        f"{trace.start + len(trace) - 1}, {trace.duration_seconds:g} s of arrivals, become a {kind} problem; not used: "
        f"{unused}"
    )
