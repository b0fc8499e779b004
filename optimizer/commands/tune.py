"""`specopt tune`: a speculation table from measured throughput, and what to measure next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from specopt.commands.options import argument, filled, flag, from_fields, option
from specopt.commands.shared import AsJson, EngineVersion, Output, check_target
from specopt.console.stdout import stdout
from specopt.console.streams import say
from specopt.models.errors import InvalidInput

if TYPE_CHECKING:
    from specopt.models.sweep import Point
    from specopt.solvers.speculation_table.tuning.decision import Goal

_LONGEST = 5  # draft in question where an engine is driven and nobody says


@dataclass(frozen=True, kw_only=True)
class Tune:
    """What `tune` takes."""

    sweep: list[str] = argument(
        "SWEEP...",
        "Measured throughput: CSV, vllm bench serve or sweep, GuideLLM, SGLang bench_serving; FILE@K or "
        "FILE@none where a file does not say the draft length.",
    )
    engine: str = option("E", "vllm, sglang, tensorrt-llm or llama.cpp.", default="vllm")
    engine_version: EngineVersion = None
    max_batch: int | None = option("B", "Largest batch; default: the largest measured.")
    max_length: int | None = option("K", "Longest draft; default: the longest measured.")
    tpot: float | None = option("MS", "The longest draft whose time per output token stays below.")
    loss: float = option("SHARE", "Throughput that a batch may lose for fewer ranges.", default=0.01)
    robust: bool = flag("Best at the lower end of the bands; nothing that may be slower.")
    weights: Path | None = option("FILE", "How often each concurrency occurs: JSON {concurrency: weight}.")
    workload: str | None = option("NAME", "The one that is served; default: all, in equal shares.")
    model: str | None = option("NAME", "The one to take from files with several.")
    draft: str | None = option("NAME", "The same, of draft models.")
    context: int | None = option("TOKENS", "Context that is served; default: all.")
    ask: bool = flag("Say which points to measure next.")
    budget: int = option("N", "Upper limit of the points to ask for.", default=4)
    regret: float = option("SHARE", "Ask until no more than this may be lost.", default=0.02)
    confidence: float = option("SHARE", "Coverage of the bands.", default=0.9)
    drive: str | None = option(
        "COMMAND", "Measure what --ask asks for: starts a server, {k} is its draft length or none."
    )
    endpoint: str = option("URL", "With --drive: where the server answers.", default="http://127.0.0.1:8000")
    loads: str = option("N,...", "With --drive: concurrencies in question.", default="1,4,16,64")
    prompts: Path | None = option("FILE", "With --drive: prompts, one a line; default: stories.")
    tokens: int = option("N", "With --drive: tokens of an answer.", default=256)
    seconds: float = option("S", "With --drive: how long a load lasts.", default=60.0)
    extrapolate: bool = flag("Look beyond the measured range, too.")
    as_json: AsJson = False
    output: Output = None


@from_fields
def tune(given: Tune) -> None:
    """Choose draft lengths per batch size from measured throughput.

    The table that an engine takes, what it is worth with bands from held-out measurements, and whether to leave
    speculation out.
    """
    from specopt.engines import ENGINES
    from specopt.instances.sweeps import parse_source, read_sweeps
    from specopt.models.files import to_json, write_text
    from specopt.solvers.speculation_table.tuning.decision import Goal
    from specopt.solvers.speculation_table.tuning.tuner import Tuner

    if given.engine not in ENGINES:
        raise InvalidInput(f"--engine: expected one of {', '.join(ENGINES)}, got {given.engine!r}")
    for source in given.sweep:
        check_target(given.output, Path(parse_source(source)[0]))
    check_target(given.output, given.weights)
    engine = ENGINES[given.engine]
    goal = filled(
        Goal,
        given,
        tpot_seconds=None if given.tpot is None else given.tpot / 1000.0,
        weights=None if given.weights is None else _weights(given.weights),
        context_tokens=given.context,
        single=engine.single,
    )
    if given.drive is not None:
        _drive(given, given.drive, goal)
    sweep = read_sweeps(given.sweep, model=given.model, draft=given.draft)
    tuner = Tuner.from_sweep(sweep, goal, given.regret, given.confidence)
    if given.ask and not tuner.is_comparable:
        points = tuner.ask(max(1, given.budget))
        if given.as_json:
            typer.echo(to_json({"ask": [_point(point) for point in points]}), file=stdout())
        else:
            typer.echo("Measure first, to have something to compare:", file=stdout())
            _print_points(points)
        return
    tuning = tuner.result()
    points = tuner.ask(given.budget) if given.ask and given.budget else []
    config = engine.config(tuning.schedule, given.engine_version)
    advice = engine.notes(tuning.schedule, given.engine_version)
    data = tuning.to_dict() | {"engine": given.engine, "config": config, "ask": [_point(point) for point in points]}
    data["notes"] = [*tuning.notes, *advice]
    if given.output is not None:
        write_text(given.output, to_json(data) + "\n")
    if given.as_json:
        typer.echo(to_json(data), file=stdout())
        return
    from specopt.views.terminal import console
    from specopt.views.tuning import print_tuning

    print_tuning(tuning, config, advice, console())
    if given.ask:
        more = f"Measure next (to certify a regret of at most {given.regret:.1%}):" if points else "Nothing to measure."
        typer.echo(f"\n{more}", file=stdout())
        _print_points(points, {measurement.point for measurement in tuner.measurements})
    if given.output is not None:
        say(f"written to {given.output}")


def _drive(given: Tune, command: str, goal: Goal) -> None:
    """Add to the sweep what an engine does, until nothing more is to be measured."""
    from specopt.commands.measure import numbers_of
    from specopt.measuring.client import PROMPTS, Client
    from specopt.measuring.drive import Drive
    from specopt.models.reading import read_text
    from specopt.solvers.speculation_table.tuning.tuner import Tuner

    if len(given.sweep) != 1:
        raise InvalidInput(f"--drive: expected one SWEEP, the CSV file that rows are added to, got {len(given.sweep)}")
    prompts = tuple(filter(None, read_text(given.prompts).splitlines())) if given.prompts else PROMPTS
    client = Client(endpoint=given.endpoint, prompts=prompts, max_tokens=given.tokens, seconds=given.seconds)
    sweep = Path(given.sweep[0])
    tuner = Tuner(
        numbers_of("--loads", given.loads), range(1, (given.max_length or _LONGEST) + 1), goal=goal, regret=given.regret
    )
    try:
        measured = Drive(command=command, sweep=sweep, client=client).run(tuner)
    except BaseException:
        if sweep.exists():
            say(f"{sweep} keeps what was measured; the same command goes on from there")
        raise
    say(f"{measured} loads measured")


def _weights(path: Path) -> dict[int, float]:
    from specopt.models.files import read_json

    data = read_json(path)
    if not isinstance(data, dict) or not all(key.isdecimal() and len(key) < 10 for key in data):
        raise InvalidInput(f"{path}: expected an object of weights by concurrency")
    return {int(key): value for key, value in data.items()}


def _point(point: Point) -> dict[str, Any]:
    found: dict[str, Any] = {
        "concurrency": point.condition.concurrency,
        "draft_length": "none" if point.draft_length is None else point.draft_length,
    }
    if point.condition.context_tokens:
        found["context_tokens"] = point.condition.context_tokens
    if point.condition.workload:
        found["workload"] = point.condition.workload
    return found


def _print_points(points: Sequence[Point], known: Collection[Point] = ()) -> None:
    from specopt.models.fields import printable

    for point in points:
        text = ", ".join(f"{key} {printable(str(value))}" for key, value in _point(point).items())
        typer.echo(f"  {text}{' (again: noise decides)' if point in known else ''}", file=stdout())
