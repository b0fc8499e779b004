"""The command `specopt import`, which creates a problem from rows of a request trace."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from specopt.commands.shared import (
    Output,
    Parameters,
    Replacements,
    RuntimesFile,
    Seed,
    argument,
    check_target,
    hand_over,
    measured,
    option,
    required,
)
from specopt.console.streams import say
from specopt.instances.traces import Trace, read_trace
from specopt.models.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class Import:
    """Values of the arguments and options of `specopt import`."""

    trace: Path = argument("TRACE", "A file of requests: CSV or JSON lines.")
    kind: str = required(
        "KIND", "serving-latency, continuous-serving or verification-batch.", "--as"
    )
    tasks: int | None = option("N", "Number of rows to use; default: all from --start on.")
    start: int | None = option("N", "First row, counted from 0 without dropped rows.")
    from_seconds: float | None = option(
        "S", "Use arrivals from this time on; the first row has time 0."
    )
    to_seconds: float | None = option("S", "Use arrivals before this time.")
    family: str | None = option("F", "Family of KIND for the values that traces do not contain.")
    param: Parameters = None
    seed: Seed = 0
    runtimes: RuntimesFile = None
    set_: Replacements = None
    format_: str | None = option(
        "F", "azure, burstgpt, mooncake, bailian, vidur or csv; default: recognised.", "--format"
    )
    column: list[str] | None = option(
        "KEY=NAME", "A column of a CSV file; KEY: arrival, input, output."
    )
    time_unit: str | None = option("UNIT", "Unit of arrivals in a CSV file: s, ms, us, ns or date.")
    output: Output = None


def import_(given: Import) -> None:
    """Create a problem from rows of a request trace."""
    from specopt.api.arguments import pairs_of, parameters_of, with_fields
    from specopt.api.generate import from_trace
    from specopt.models.files import to_json

    check_target(given.output, given.trace, given.runtimes)
    by_time = given.from_seconds is not None or given.to_seconds is not None
    if by_time and (given.start is not None or given.tasks is not None):
        raise InvalidInput(
            "--from-seconds and --to-seconds select rows by time, --start and --tasks by number;"
            " use one of the two"
        )
    if given.tasks == 0:
        raise InvalidInput("--tasks: expected an integer >= 1, got 0")
    maker = from_trace(given.kind)
    name = maker.family(given.family).name
    parameters = parameters_of(name, given.param or ())
    columns = pairs_of(given.column or (), "--column")
    read = read_trace(
        given.trace,
        given.format_,
        columns=columns,
        time_unit=given.time_unit,
        start=given.start or 0,
        rows=given.tasks,
    )
    if by_time:
        read = read.between(
            given.from_seconds or 0.0, math.inf if given.to_seconds is None else given.to_seconds
        )
    problem = maker.problem(read, name, seed=given.seed, **parameters)
    problem = with_fields(measured(problem, given.runtimes), given.set_ or ())
    say(_summary(read, given.kind, maker.unused))
    if read.guess:
        say(read.guess)
    hand_over(to_json(problem.to_dict()), given.output)


def _summary(trace: Trace, kind: str, unused: str) -> str:
    reasons = ", ".join(f"{rows} with {reason}" for reason, rows in trace.dropped)
    dropped = f"{trace.dropped_rows} dropped" + (f" ({reasons})" if reasons else "")
    order = f", {trace.out_of_order} out of order and sorted" if trace.out_of_order else ""
    return (
        f"{trace.source} ({trace.format}): {trace.rows_read} rows read, {dropped}{order}; rows"
        f" {trace.start} to {trace.start + len(trace) - 1}, {trace.duration_seconds:g} s of"
        f" arrivals, become a {kind} problem; not used: {unused}"
    )
