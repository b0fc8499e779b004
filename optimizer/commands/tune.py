"""The command `specopt tune`, which computes a speculation table from measured throughput and
chooses the points to measure next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specopt.commands.shared import (
    AsJson,
    EngineVersion,
    Output,
    argument,
    check_target,
    console,
    filled,
    flag,
    hand_over,
    option,
    say_written,
)
from specopt.console.streams import say
from specopt.models.errors import InvalidInput
from specopt.models.files import read_json, to_json, write_text

if TYPE_CHECKING:
    from specopt.engines import Engine
    from specopt.models.sweep import Point, Sweep
    from specopt.solvers.speculation_table.tuning.goal import Goal

_LONGEST = 5  # maximum draft length with --drive if --max-length is not specified


@dataclass(frozen=True, kw_only=True)
class Tune:
    """Values of the arguments and options of `specopt tune`."""

    sweep: list[str] = argument(
        "SWEEP...",
        "Measured throughput: CSV, or output of vllm bench serve or sweep, GuideLLM or SGLang"
        " bench_serving. Write FILE@K or FILE@none if a file does not contain the draft length.",
    )
    engine: str = option("E", "Engine: vllm, sglang, tensorrt-llm or llama.cpp.", default="vllm")
    engine_version: EngineVersion = None
    max_batch: int | None = option("B", "Maximum batch size; default: the largest measured size.")
    max_length: int | None = option(
        "K", "Maximum draft length; default: the longest measured length."
    )
    tpot: str | None = option(
        "MS[@mean|p50|p99]",
        "Target time per output token; maximizes the number of concurrent requests that meet it.",
    )
    ttft: float | None = option("MS", "Maximum mean time to the first token; requires --tpot.")
    mix: str | None = option("NAME=SHARE,...", "Shares of the workloads in the generated tokens.")
    price: float | None = option(
        "COINS", "Price of an engine per hour; adds the cost of a million tokens to the output."
    )
    per: str | None = option(
        "joule|coin", "Quantity to maximize: tokens per joule, or tokens per coin of --price."
    )
    memory: float | None = option(
        "GB", "Memory in 10^9 bytes, which limits concurrent requests; requires both configs."
    )
    draft_config: Path | None = option("CONFIG", "Hugging Face config.json of the drafter.")
    verify_config: Path | None = option("CONFIG", "Hugging Face config.json of the verify model.")
    loss: float = option(
        "SHARE",
        "Maximum loss of throughput per batch size in exchange for fewer ranges.",
        default=0.01,
    )
    robust: bool = flag(
        "Maximize the lower end of the speed-up; exclude setups that may be slower, or limit the"
        " batch size."
    )
    weights: Path | None = option(
        "FILE", "Frequency of each concurrency (JSON): {concurrency: weight}."
    )
    workload: str | None = option(
        "NAME", "Workload to optimize for; default: all, in equal shares."
    )
    model: str | None = option("NAME", "Name of the model to use if files contain several.")
    draft: str | None = option(
        "NAME", "Name of the drafter to use; default: choose the best of all."
    )
    context: int | None = option("TOKENS", "Context length to optimize for; default: all.")
    ask: bool = flag("Print the points to measure next.")
    budget: int = option("N", "Maximum number of points to request.", default=4)
    regret: float = option(
        "SHARE", "Maximum loss of throughput at which no more points are requested.", default=0.02
    )
    confidence: float = option("SHARE", "Confidence level of the bands.", default=0.9)
    drive: str | None = option(
        "COMMAND",
        "Command that starts a server, to measure the points of --ask; {k} is the draft length.",
    )
    endpoint: str = option(
        "URL", "With --drive: URL of the server.", default="http://127.0.0.1:8000"
    )
    loads: str = option(
        "N,...", "With --drive: concurrencies that may be measured.", default="1,4,16,64"
    )
    prompts: Path | None = option(
        "FILE", "With --drive: file of prompts, one per line; default: stories."
    )
    tokens: int = option("N", "With --drive: number of tokens per answer.", default=256)
    seconds: float = option("S", "With --drive: duration of a load, in seconds.", default=60.0)
    extrapolate: bool = flag("Also consider setups outside the measured range.")
    as_json: AsJson = False
    output: Output = None


def tune(given: Tune) -> None:
    """Choose the draft length for each batch size from measured throughput.

    The command prints the table for an engine, the gain from this table, and advice on whether to
    disable speculation. The gain has uncertainty bands, which are based on held-out measurements.
    """
    from specopt.engines import ENGINES
    from specopt.instances.sweeps import parse_source, read_sweeps
    from specopt.solvers.speculation_table.tuning.options import Options, named

    if given.engine not in ENGINES:
        raise InvalidInput(f"--engine: expected one of {', '.join(ENGINES)}, got {given.engine!r}")
    sources = [Path(parse_source(source)[0]) for source in given.sweep]
    check_target(given.output, *sources, given.weights)
    engine = ENGINES[given.engine]
    if given.per not in (None, "joule", "coin") or (given.per == "coin" and given.price is None):
        raise InvalidInput(f"--per: expected joule, or coin with --price, got {given.per!r}")
    if given.drive is not None:
        _drive(given, given.drive, engine)
    sweep = read_sweeps(given.sweep, model=given.model, draft=given.draft)
    front = sweep.front(given.workload)
    if given.per == "joule":
        if given.tpot is not None:
            raise InvalidInput("--per joule cannot be combined with --tpot; use --per coin")
        sweep = sweep.per_joule()
    goal = _goal(given, sweep, engine)
    if given.ask:
        first = _first_points(given, sweep, goal)
        if first and given.as_json:
            hand_over(to_json({"ask": first}))
            return
        if first:
            hand_over("Measure first, to have something to compare:")
            _print_points(first)
            return
    options = Options.of(sweep, goal, given.regret, given.confidence, asking=given.ask)
    asked = options.ask(given.budget) if given.ask and given.budget else []
    several = len(options.tunings) > 1
    points = [(named(setup) if several else {}) | _point(point) for setup, point in asked]
    best = options.best
    config, advice = engine.written(best.schedule, given.engine_version, best.setup)
    data = options.to_dict() | {"engine": given.engine, "config": config, "ask": points}
    data["notes"] += [*_costs(given, data), *advice]
    if best.cap is not None:
        data["notes"].append(f"with {given.engine}, {engine.batch} {best.cap} limits the batch")
    if front:
        data["front"] = front
    if sweep.unit != "tokens per second":
        for row in data["predictions"]:
            row[sweep.unit.replace(" ", "_")] = row.pop("tokens_per_second")
    if given.output is not None:
        write_text(given.output, to_json(data) + "\n")
    if given.as_json:
        hand_over(to_json(data))
        return
    from specopt.views.speculation_table import print_tuning

    print_tuning(options, data, sweep.unit, console())
    if given.ask:
        more = (
            f"Measure next (to certify a regret of at most {given.regret:.1%}):"
            if points
            else "No further measurements are needed."
        )
        hand_over(f"\n{more}")
        known = {one.point for tuner in options.tuners.values() for one in tuner.measurements}
        _print_points(points, [point in known for _, point in asked])
    say_written(given.output)


def _first_points(given: Tune, sweep: Sweep, goal: Goal) -> list[dict[str, Any]]:
    """Return the points that must be measured before setups can be compared.

    If there are several setups, each point with drafts also contains the fields of its setup. The
    list is empty if the existing measurements suffice.
    """
    from specopt.solvers.speculation_table.tuning.options import named
    from specopt.solvers.speculation_table.tuning.tuner import Tuner

    found: list[dict[str, Any]] = []
    for setup in sweep.setups:
        tuner = Tuner.from_sweep(
            sweep.of(setup), goal, given.regret, given.confidence, asking=given.ask
        )
        if tuner.is_comparable:
            return []
        several = len(sweep.setups) > 1
        for point in tuner.ask(max(1, given.budget)):
            own = named(setup) if several and point.draft_length is not None else {}
            if own | _point(point) not in found:
                found.append(own | _point(point))
    return found[: max(1, given.budget)]


def _goal(given: Tune, sweep: Sweep, engine: Engine) -> Goal:
    from specopt.models.arguments import number
    from specopt.solvers.speculation_table.tuning.goal import Goal

    target, _, statistic = (given.tpot or "").partition("@")
    shares = [part.partition("=") for part in (given.mix or "").split(",") if part]
    try:
        tpot = float(target) / 1000.0 if target else None
        mix = {name.strip(): float(share) for name, _, share in shares} or None
    except ValueError:
        raise InvalidInput(
            "--tpot, --mix: expected numbers, for example 40, 40@p99 or chat=0.9,code=0.1"
        ) from None
    for name, value in (
        ("--price", given.price),
        ("--ttft", given.ttft),
        ("--memory", given.memory),
    ):
        if value is not None:
            number(name, value, above=0)
    in_sweep = any(one.context_tokens for one in sweep.conditions)
    return filled(
        Goal,
        given,
        tpot_seconds=tpot,
        tpot_of=statistic or "mean",
        ttft_seconds=None if given.ttft is None else given.ttft / 1000.0,
        weights=_weights(given.weights),
        mix=mix,
        context_tokens=given.context if in_sweep or given.memory is None else None,
        single=engine.single,
        prices=engine.prices,
        room=None if given.memory is None else _room(given, sweep),
    )


def _room(given: Tune, sweep: Sweep) -> tuple[int, int]:
    """Return how many requests fit in memory, as a pair: without and with the drafter."""
    from specopt.instances.checkpoints.model_config import read_model_config
    from specopt.instances.deployment.deployment import room

    assert given.memory is not None, "it is given"
    if given.draft_config is None or given.verify_config is None:
        raise InvalidInput("--memory: also give --draft-config and --verify-config")
    tokens = float(given.context or max(condition.context_tokens for condition in sweep.conditions))
    if not tokens:
        raise InvalidInput(
            "--memory: the length of requests is unknown; give --context, or a sweep with"
            " context_tokens"
        )
    tokens += max(one.also.get("output_tokens", 0.0) for one in sweep.measurements)
    verify, draft = read_model_config(given.verify_config), read_model_config(given.draft_config)
    return room(given.memory * 1e9, tokens, verify), room(given.memory * 1e9, tokens, verify, draft)


def _costs(given: Tune, data: dict[str, Any]) -> list[str]:
    """Add the cost per million tokens to each output row, and return notes about the cost.

    Without a price per hour, or if tokens per joule are maximised, the rows are unchanged and the
    list of notes is empty.
    """
    if given.price is None or given.per == "joule":
        return []
    for row in [*data["predictions"], *data.get("capacity", ())]:
        if row["tokens_per_second"]:
            row["coins_per_million_tokens"] = given.price / 3600.0 * 1e6 / row["tokens_per_second"]
    return [
        f"an hour costs {given.price:g} with any draft length, so maximizing tokens per second also"
        " maximizes tokens per coin"
    ]


def _drive(given: Tune, command: str, engine: Engine) -> None:
    """Measure an engine and append rows to the sweep until no more measurements are needed."""
    from specopt.commands.measure import numbers_of
    from specopt.measuring.client import PROMPTS, Client
    from specopt.measuring.drive import drive
    from specopt.models.reading import read_text
    from specopt.solvers.speculation_table.tuning.goal import Goal
    from specopt.solvers.speculation_table.tuning.tuner import Tuner

    if len(given.sweep) != 1:
        raise InvalidInput(
            "--drive: expected one SWEEP, the CSV file to which rows are added, got"
            f" {len(given.sweep)} files"
        )
    prompts = PROMPTS
    if given.prompts is not None:
        prompts = tuple(filter(None, read_text(given.prompts).splitlines()))
    client = filled(Client, given, model=None, prompts=prompts, max_tokens=(given.tokens,))
    sweep = Path(given.sweep[0])
    goal = Goal(weights=_weights(given.weights), single=engine.single)
    tuner = Tuner(
        numbers_of("--loads", given.loads),
        range(1, (given.max_length or _LONGEST) + 1),
        goal=goal,
        regret=given.regret,
    )
    try:
        measured = drive(command, sweep, client, tuner)
    except BaseException:
        if sweep.exists():
            say(f"the measurements so far are in {sweep}; run the same command again to continue")
        raise
    say(f"{measured} loads measured")


def _weights(path: Path | None) -> dict[int, float] | None:
    if path is None:
        return None
    data = read_json(path)
    if not isinstance(data, dict) or not all(key.isdecimal() and len(key) < 10 for key in data):
        raise InvalidInput(f"{path}: expected an object that maps concurrencies to weights")
    return {int(key): value for key, value in data.items()}


def _point(point: Point) -> dict[str, Any]:
    from specopt.models.load import name_of

    at = point.condition
    found = {"concurrency": at.concurrency, "draft_length": name_of(point.draft_length)}
    more = {"context_tokens": at.context_tokens, "workload": at.workload}
    return found | {name: value for name, value in more.items() if value}


def _print_points(points: Sequence[Mapping[str, Any]], known: Sequence[bool] = ()) -> None:
    from specopt.models.fields import printable

    for point, again in zip_longest(points, known):
        text = ", ".join(f"{key} {printable(str(value))}" for key, value in point.items())
        hand_over(f"  {text}{' (again, because of noise)' if again else ''}")
