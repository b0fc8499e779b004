"""The command `specopt plan`, which computes a judged plan or an engine configuration from two
model configs and measured forward passes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specopt.commands.export import show_speculation_table
from specopt.commands.shared import (
    FOUND,
    AsJson,
    EngineVersion,
    Gap,
    Output,
    Replacements,
    Seconds,
    Seed,
    check_target,
    console,
    exit_code,
    option,
    print_json,
    problem_file,
    required,
    say_written,
    write,
)
from specopt.console.streams import say
from specopt.instances.deployment.deployment import Deployment, Fleet, room
from specopt.instances.deployment.proposal import Proposal, Value
from specopt.kinds import kind_of, names_with
from specopt.models.errors import InvalidInput
from specopt.solvers.clock import Clock

if TYPE_CHECKING:
    from specopt.engines import Engine
    from specopt.models.acceptance_lengths import Acceptance
    from specopt.solvers.speculation_table.runtimes import Runtimes
    from specopt.solvers.speculation_table.table import SpeculationTable

RATE = 0.7
"""Acceptance rate that is assumed for an engine configuration if none is specified.

If speculation does not pay off at this rate, the break-even rate is assumed instead.
"""

PRICED = (0.5, 0.9)
"""Ends of a typical range of acceptance rates. Speedups are reported at both ends."""

TASKS = 100

LINK = "The engine drafts next to the verifier. If clients' devices may draft, --link decides:"

NO_TABLE = (
    "--runtimes: give this option, or --peak TFLOPS,GB/s for a rough estimate. To measure a table"
    " of passes on the machine: `specopt measure CONFIG -o TABLE`, or `llama-bench -p"
    " 1,2,3,4,5,6,8 -n 0 -o csv` of both models"
)

FLEET = ("device_runtimes", "clients", "tpot", "price", "power")
"""Options that describe clients and their devices, limits and costs."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Values of the arguments and options of `specopt plan`."""

    draft: Path = required("CONFIG", "Hugging Face config.json of the draft model.")
    verify: Path = required("CONFIG", "Hugging Face config.json of the verify model.")
    runtimes: Path | None = option(
        "FILE|TABLE",
        "Runtimes written by fit (JSON), or a table written by measure or llama-bench (CSV).",
    )
    peak: str | None = option(
        "TFLOPS,GB/s",
        "Peak performance of the machine; use it without --runtimes, for a rough estimate.",
    )
    for_: str = required(
        "KIND|ENGINE",
        "Kind: serving-latency, verification-batch, prompt-chunking, fair-goodput or placement; or"
        " engine: vllm, sglang, tensorrt-llm or llama.cpp.",
        "--for",
    )
    trace: Path | None = option("FILE", "Trace of requests, in a format that import accepts.")
    tasks: int | None = option("N", f"Number of rows of the trace to use; default: {TASKS}.")
    link: str | None = option("MBITS[,RTT_MS]", "Link between the machines that draft and verify.")
    device_runtimes: Path | None = option(
        "FILE|TABLE", "Runtimes of the draft model on clients' devices."
    )
    clients: int | None = option("N", "Number of clients that decode concurrently.")
    tpot: float | None = option("MS", "Maximum time per token, in milliseconds.")
    price: str | None = option(
        "VERIFIER[,POOL]", "Price of a machine per hour; with POOL, drafting servers may be used."
    )
    power: str | None = option(
        "IDLE,BUSY[,DEVICE]", "Power in watts of a machine, and of a device that drafts."
    )
    memory: float | None = option(
        "GB",
        "Memory in 10^9 bytes of the verifier's machine; for serving-latency: of the drafter's.",
    )
    acceptance: Path | None = option(
        "FILE", "Measured acceptance, in a format that export accepts."
    )
    mode: str | None = option("NAME", "Mode or subset to use if golden lengths contain several.")
    set_: Replacements = None
    engine_version: EngineVersion = None
    time_limit: Seconds = 60.0
    gap: Gap = 1e-3
    seed: Seed = 0
    problem: Path | None = option("FILE", "Write the problem to this file.")
    as_json: AsJson = False
    output: Output = None


def plan(given: Plan) -> int:
    """Compute a judged plan from models, runtimes and a link, and list the plan's assumptions.

    For a KIND, the output is a result file, as for solve; for an ENGINE, it is a configuration.
    Values that no option specifies are taken from a published setting and are listed as assumed.
    """
    from specopt.api.generate import from_deployment
    from specopt.engines import ENGINES

    clock = Clock(given.time_limit)
    inputs = given.draft, given.verify, given.runtimes, given.device_runtimes
    for target in (given.output, given.problem):
        check_target(target, *inputs, given.trace, given.acceptance)
    if given.tasks == 0 or (given.tasks is not None and given.trace is None):
        raise InvalidInput("--tasks: expected an integer >= 1 together with --trace")
    kinds, for_ = from_deployment(), given.for_
    if for_ not in {*kinds, *ENGINES}:
        raise InvalidInput(f"--for: expected one of {', '.join((*kinds, *ENGINES))}, got {for_!r}")
    advised = for_ in kinds and kind_of(for_).advice is not None
    for name in () if advised or (for_ in ENGINES and given.link is not None) else FLEET:
        if getattr(given, name) is not None:
            raise InvalidInput(
                f"--{name.replace('_', '-')}: expected --for {names_with('advice')}, or an engine"
                f" with --link, got --for {for_}"
            )
    known = _deployment(given)
    if for_ in ENGINES:
        for option, value in (("--set", given.set_), ("--problem", given.problem)):
            if value:
                raise InvalidInput(
                    f"{option}: expected --for with a kind of problem, got --for {for_}"
                )
        _engine(ENGINES[for_], known, given)
        return FOUND
    if given.engine_version is not None:
        raise InvalidInput(f"--engine-version: expected --for with an engine, got --for {for_}")
    return _kind(_replaced(kinds[for_](known, given.seed), given.set_ or ()), known, given, clock)


def _deployment(given: Plan) -> Deployment:
    from specopt.instances.acceptance import read_acceptance
    from specopt.instances.checkpoints.model_config import read_model_config
    from specopt.instances.deployment.link import Link
    from specopt.instances.deployment.passes import Passes
    from specopt.instances.traces import read_trace
    from specopt.models import arguments

    small = {"draft": read_model_config(given.draft)}
    models = small | {"verify": read_model_config(given.verify)}
    if given.runtimes is not None and given.peak is None:
        passes = Passes.read(given.runtimes, models)
    elif given.peak is not None and given.runtimes is None:
        passes = Passes.from_peak(given.peak, models)
    else:
        raise InvalidInput(NO_TABLE)
    price = _numbers("--price", given.price, "VERIFIER[,POOL]", 1)
    watts = _numbers("--power", given.power, "IDLE,BUSY[,DEVICE]", 2)
    read = None if given.trace is None else read_trace(given.trace, rows=given.tasks)
    if read is not None and read.guess:
        say(read.guess)
    if read is not None and given.tasks is None:
        read = read.window(0, min(TASKS, len(read)))
    return Deployment(
        **models,
        passes=passes,
        trace=read,
        link=None if given.link is None else Link.parse(given.link, "--link"),
        memory_bytes=(
            None
            if given.memory is None
            else arguments.number("--memory", given.memory, above=0) * 1e9
        ),
        acceptance=(
            None if given.acceptance is None else read_acceptance(given.acceptance, mode=given.mode)
        ),
        fleet=Fleet(
            device=(
                None if given.device_runtimes is None else Passes.read(given.device_runtimes, small)
            ),
            clients=(
                None if given.clients is None else arguments.integer("--clients", given.clients, 1)
            ),
            seconds_per_token=(
                None
                if given.tpot is None
                else arguments.number("--tpot", given.tpot, above=0) / 1e3
            ),
            price_per_second=price and tuple(one / 3600.0 for one in price),
            watts=watts,
        ),
    )


def _numbers(option: str, text: str | None, names: str, least: int) -> tuple[float, ...] | None:
    """Parse the value of an option as a list of nonnegative numbers.

    The list must contain at least `least` numbers. None is returned unchanged.
    """
    parts = [] if text is None else text.split(",")
    try:
        found = tuple(map(float, parts))
    except ValueError:
        found = ()
    if text is not None and not (
        least <= len(found) <= names.count(",") + 1 and min(found) >= 0.0 and max(found) < math.inf
    ):
        raise InvalidInput(f"{option}: expected {names}, all numbers >= 0, got {text!r}")
    return found or None


def _replaced(proposal: Proposal, values: Sequence[str]) -> Proposal:
    """Return a copy of a proposal in which some fields of the problem are replaced."""
    from specopt.api.arguments import pairs_of, with_fields

    paths = [
        [step for step in path.split(".") if not step.isdecimal()]
        for path in pairs_of(values, "--set")
    ]
    own = {".".join(path[:2]): "--set" for path in paths}
    replaced = with_fields(proposal.problem, values)
    return dataclasses.replace(
        proposal, problem=replaced, sources={**proposal.sources, **own}
    ).labelled()


def _kind(proposal: Proposal, known: Deployment, given: Plan, clock: Clock) -> int:
    """Solve the proposed problem, judge the result, and print the proposal and the result.

    Return the exit code.
    """
    from importlib import import_module

    from specopt.api.solve import solve
    from specopt.console.terminal import line, sentence
    from specopt.models.judge import verify
    from specopt.views.planning import print_next, print_values
    from specopt.views.result import print_result

    problem, out = proposal.problem, console()
    if not given.as_json:
        print_values(problem.kind, proposal.values, proposal.unused, out)
        line(out, "assumed from", f"{proposal.family.name}: {proposal.family.summary}")
    advice, more = kind_of(problem).advice, {}
    following: Sequence[str] = ()
    result = solve(
        problem, time_limit=clock.remaining, gap=given.gap, seed=given.seed, verbose=True
    )
    if advice is not None:
        said = import_module(advice).advise(known, proposal, result)
        result, more, following = said.result, {"advice": said.to_dict()}, said.measure
    following = [*following, *proposal.next]
    write(problem, given.problem)
    result = dataclasses.replace(result, problem_file=problem_file(given.problem, given.output))
    write(result, given.output)
    report = None if result.plan is None else verify(problem, result)
    if given.as_json:
        judged = (
            None if report is None else {"feasible": report.feasible, "objective": report.objective}
        )
        own = {"problem": problem.to_dict(), "result": result.to_dict(), "judged": judged}
        print_json({**own, **more, **_basis(proposal.values, proposal.unused, following)})
    else:
        for text in said.lines if advice is not None else ():
            sentence(out, text)
        print_result(problem, result, out)
        if report is not None:
            line(out, "judged", "feasible" if report.feasible else "; ".join(report.violations))
        print_next(following, out)
        say_written(given.problem, given.output)
    return exit_code(result)


def _engine(engine: Engine, known: Deployment, given: Plan) -> None:
    """Compute the draft length for each batch size, and print an engine configuration.

    The values on which the configuration is based are printed as well.
    """
    from specopt.api.placing import advise
    from specopt.console.terminal import sentence
    from specopt.instances.placement.from_deployment import placement
    from specopt.solvers.speculation_table.table import speculation_table
    from specopt.views.planning import print_next, print_values

    times, values = _times(known)
    multiple = _predicted(given.draft) if engine.name == "vllm" else 1
    most = None
    if known.memory_bytes is not None:
        most = room(known.memory_bytes, max(times.contexts), known.draft, known.verify)
        if not most:
            raise InvalidInput(
                "--memory: expected enough for the weights of both models and one request; use a"
                " larger machine or smaller models"
            )
        values.append(
            Value(
                "largest batch",
                str(most),
                "--memory minus the weights, divided by the cache of a request",
            )
        )

    def made(rates: Acceptance) -> SpeculationTable:
        found = speculation_table(times, rates, multiple=multiple)
        if most is None or most >= len(found.relative):
            return found
        return speculation_table(times, rates, max_batch=most, multiple=multiple)

    is_assumed = known.acceptance is None
    beside: dict[str, Any] = {}
    if known.acceptance is None:
        rates, value, beside = _unknown(times, made, multiple)
        values.insert(0, value)
    else:
        rates = known.acceptance
        values.append(Value("acceptance", f"{known.rate:.3g} as one rate", "--acceptance"))
    found = made(rates)
    if multiple > 1:
        values.append(
            Value(
                "n_predict",
                str(multiple),
                f"{given.draft}: vLLM accepts only multiples of this value as draft lengths",
            )
        )
    advice = [
        *(
            ["acceptance: --acceptance FILE, two scrapes of the engine's /metrics"]
            if is_assumed
            else []
        ),
        *(["context_tokens: --trace FILE, a log of requests"] if known.trace is None else []),
        (
            "zero_draft_cost: throughput at a few concurrencies with and without drafts, for"
            " `specopt tune SWEEP --ask`"
        ),
    ]
    link = () if known.link is None else advise(known, placement(known, given.seed)).lines
    out = console()
    if not given.as_json:
        print_values(engine.name, values, (), out)
    show_speculation_table(
        found,
        rates,
        engine,
        given.engine_version,
        given.as_json,
        given.output,
        {**({"link": list(link)} if link else {}), **_basis(values, (), advice), **beside},
    )
    if given.as_json:
        return
    for text in ("", LINK, *link) if link else ():
        sentence(out, text)
    print_next(advice, out)


def _times(known: Deployment) -> tuple[Runtimes, list[Value]]:
    """Return the runtimes of decoding steps, and the list of values on which they are based."""
    from specopt.instances.runtimes.measured import FORM
    from specopt.solvers.speculation_table.runtimes import Runtimes

    path = known.passes.path
    data: dict[str, Any] = dict(known.passes.runtimes(FORM))
    values = [
        Value(f"{name} passes", known.passes.times[name].measured or "as fitted", path)
        for name in known.passes.models
    ]
    if known.trace is not None:
        data["context_tokens"] = int(known.context(known.passes.times["verify"]))
    times = Runtimes.from_dict(data, path)
    contexts = ", ".join(f"{one:g}" for one in times.contexts)
    source = (
        f"mean of {known.rows}, limited to the measured range" if known.trace is not None else path
    )
    values.append(
        Value(
            "context_tokens", contexts, source, known.trace is None and "context_tokens" not in data
        )
    )
    for name, shown, default in (
        ("step_overhead_seconds", f"{times.step_overhead_seconds:g}", "none"),
        (
            "zero_draft_cost",
            "{:g} to {:g}".format(*times.zero_draft_cost),
            "as reported for engines",
        ),
    ):
        values.append(Value(name, shown, path if name in data else default, name not in data))
    return times, values


def _unknown(
    times: Runtimes, made: Callable[[Acceptance], SpeculationTable], multiple: int
) -> tuple[Acceptance, Value, dict[str, Any]]:
    """Return the acceptance to assume if it is unknown, and a description of the effect on a plan.

    The result is a tuple (acceptance, value, data). `value` contains the description as text, and
    `data` contains it in JSON-compatible form.
    """
    from specopt.models.position_acceptance import PositionAcceptance
    from specopt.solvers.speculation_table.table import break_even

    requests, drafts = made(PositionAcceptance.constant(RATE)).relative.shape
    pays = break_even(times, requests, drafts - 1, multiple)
    rate = max(RATE, pays or 0.0)
    rates = PositionAcceptance.constant(rate, PRICED[0], max(rate, PRICED[1]))
    worth = {str(one): made(rates).worth(times, one) for one in PRICED}
    text = "drafts pay off at no rate" if pays is None else f"drafts pay off above {pays:.2f}"
    text += f"; {rate:.2g} is assumed" + "".join(
        f", {speedup:.2f}x at {one}" for one, speedup in worth.items()
    )
    known = {"acceptance": {"break_even": pays, "planned": rate, "speedup": worth}}
    return rates, Value("acceptance", text, "unknown, so a range is used", True), known


def _predicted(config: Path) -> int:
    """Return the number of tokens that a model's prediction heads predict, according to its config.

    The result is 1 if the config has no prediction heads.
    """
    from specopt.models.files import read_json

    data = read_json(config)
    places = [data, data.get("text_config", {})] if isinstance(data, Mapping) else []
    names = ("n_predict", "num_nextn_predict_layers", "mtp_num_hidden_layers")
    counts = [
        place[name]
        for place in places
        if isinstance(place, Mapping)
        for name in names
        if place.get(name)
    ]
    return counts[0] if counts and isinstance(counts[0], int) else 1


def _basis(
    values: Sequence[Value], unused: Sequence[str], advice: Sequence[str]
) -> Mapping[str, Any]:
    """Return the information on which a plan is based, as JSON-compatible data.

    The data contains the values that were used, the user's data that were not used, and advice on
    measurements.
    """
    return {
        "values": [dataclasses.asdict(one) for one in values],
        "unused": list(unused),
        "measure_next": list(advice),
    }
