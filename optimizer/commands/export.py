"""The command `specopt export`, which writes plans, models and engine configurations to files for
other programs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from specopt.api.arguments import pairs_of
from specopt.api.formulation import write_formulation
from specopt.commands.shared import (
    AsJson,
    EngineVersion,
    File,
    Output,
    argument,
    check_target,
    console,
    filled,
    flag,
    hand_over,
    option,
    option_info,
    read_decoder,
    read_problem,
    read_result,
    required,
    say_written,
)
from specopt.console.streams import say
from specopt.kinds import kind_of
from specopt.models.acceptance_lengths import Acceptance
from specopt.models.errors import InvalidInput
from specopt.models.fields import dump
from specopt.models.files import csv_text, read_json, to_json, write_text
from specopt.models.problem import Plan
from specopt.models.result import Result

if TYPE_CHECKING:
    from specopt.engines import Engine
    from specopt.solvers.speculation_table.schedule import Schedule
    from specopt.solvers.speculation_table.table import SpeculationTable


class FilesToo(TyperGroup):
    """The command group `specopt export`, which also accepts a problem file without a subcommand.

    `specopt export FILE --as lp` is then equivalent to `specopt export formulation FILE --as lp`.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the subcommand to run: `formulation` if the first argument is a JSON file."""
        if args and args[0] not in self.commands and args[0].endswith(".json"):
            args = ["formulation", *args]
        return super().resolve_command(ctx, args)


export = typer.Typer(
    name="export",
    cls=FilesToo,
    help=(
        "Write a configuration for a serving engine, a plan as CSV or YAML, or a problem as a"
        " linear program."
    ),
    rich_markup_mode=None,
    add_completion=False,
)


Config = Annotated[
    Path | None,
    option_info(
        "CONFIG", "Hugging Face config.json used to count operations if FILE contains no model."
    ),
]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Values of the arguments and options for exporting an engine configuration."""

    context: typer.Context
    runtime: Path = required(
        "FILE",
        'Runtimes {"draft": runtime, "verify": runtime} (JSON), as written by fit --draft'
        " --verify. The file may also contain drafter, draft_model, verify_model, context_tokens,"
        " step_overhead_seconds and zero_draft_cost. With --draft-runtime: the single fit of a"
        " verify model.",
    )
    acceptance: Path = required(
        "FILE",
        "Measured acceptance: a scrape of /metrics, an acceptance histogram, output of vllm bench"
        " serve, golden acceptance lengths, or acceptance rates.",
    )
    draft_runtime: Path | None = option(
        "FILE", "Single fit of the draft model, in addition to that of --runtime."
    )
    before: Path | None = option(
        "FILE", "Earlier scrape of /metrics; the difference between the two scrapes is used."
    )
    model: str | None = option(
        "NAME", "Name of the model to use if scrapes or golden lengths contain several."
    )
    mode: str | None = option("NAME", "Mode to use if golden lengths contain several.")
    draft_model: Config = None
    verify_model: Config = None
    max_batch: int | None = option(
        "B", "Maximum batch size; default: the largest measured size, at most 256."
    )
    max_length: int | None = option(
        "K", "Maximum draft length; default: the longest with known acceptance."
    )
    context_tokens: int | None = option(
        "N", "Number of cached tokens per request; default: the value in FILE."
    )
    loss: float = option(
        "SHARE",
        "Maximum loss of goodput per batch size in exchange for fewer ranges.",
        default=0.01,
    )
    robust: bool = flag(
        "Maximize goodput in the worst case within the limits; never slower than no speculation."
    )
    extrapolate: bool = flag("Allow batch sizes and draft lengths outside the measured range.")
    engine_version: EngineVersion = None
    as_json: AsJson = False
    output: Output = None


def table(given: Table) -> None:
    """Compute the draft length with the highest goodput for each batch size.

    The result is written as a configuration for the engine.
    """
    from specopt.engines import ENGINES
    from specopt.instances.acceptance import read_acceptance
    from specopt.solvers.speculation_table.runtimes import Runtimes
    from specopt.solvers.speculation_table.table import speculation_table

    configs = {"draft": given.draft_model, "verify": given.verify_model}
    inputs = given.runtime, given.draft_runtime, given.acceptance, given.before
    check_target(given.output, *inputs, *configs.values())
    data = _with_models(_pair(given.runtime, given.draft_runtime), given.runtime, configs)
    if given.context_tokens is not None and isinstance(data, Mapping):
        data = {**data, "context_tokens": given.context_tokens}
    runtimes = Runtimes.from_dict(data, str(given.runtime))
    rates = filled(read_acceptance, given, path=given.acceptance)
    found = filled(speculation_table, given, runtimes=runtimes, acceptance=rates)
    engine = ENGINES[str(given.context.info_name)]
    show_speculation_table(found, rates, engine, given.engine_version, given.as_json, given.output)


def show_speculation_table(
    found: SpeculationTable,
    rates: Acceptance,
    engine: Engine,
    version: str | None,
    as_json: bool,
    output: Path | None,
    beside: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Convert a speculation table to an engine configuration and print it.

    If `output` is set, the configuration is also written to that file. If the printed output is
    JSON, it also contains the entries in `beside`.
    """
    config, advice = engine.written(found.schedule(), version)
    # engines that accept a single draft length already report this in their notes
    if config is not None and not engine.single:
        advice = (*_below_none(found.schedule()), *advice)
    if output is not None:
        write_text(output, json.dumps(config) + "\n")
    if as_json:
        data = found.to_dict()
        data["notes"] += advice
        own = config or {}  # repeated as separate entries, which are easy to copy
        hand_over(to_json({**own, "engine": engine.name, "config": config, **data, **beside}))
        return
    from specopt.views.speculation_table import print_speculation_table

    print_speculation_table(found, rates, config, advice, console())
    say_written(output)


def _below_none(schedule: Schedule) -> list[str]:
    """Return a list with a note on batch sizes at which a schedule slows decoding down.

    The comparison is with decoding without drafts. The list is empty if there are no such sizes.
    """
    runs: list[tuple[int, int, float]] = []
    for batch in schedule.batches:
        first, ratio = batch, 1.0
        if schedule.speedups is not None:
            ratio = schedule.speedups[batch - 1, schedule.at(batch) or 0]
        if ratio >= 1.0:
            continue
        if runs and runs[-1][1] == batch - 1:
            first, _, least = runs.pop()
            ratio = min(least, ratio)
        runs.append((first, batch, ratio))
    shown = [
        f"{low} ({least:.2f}x)" if low == high else f"{low} to {high} (at least {least:.2f}x)"
        for low, high, least in runs
    ]
    return (
        [f"the schedule is slower than no speculation at batch sizes {', '.join(shown)}"]
        if runs
        else []
    )


for name in (
    "vllm",
    "sglang",
    "tensorrt-llm",
    "llama.cpp",
):  # the names in engines.ENGINES, repeated so that help does not import that module
    export.command(name)(table)


def _pair(path: Path, draft: Path | None) -> object:
    """Read the runtimes of the draft model and the verify model from one or two files.

    If the first file contains a single fit, that fit is for the verify model. The fit for the draft
    model may then be read from a second file.
    """
    data = read_json(path)
    if isinstance(data, Mapping) and "form" in data:
        return ({} if draft is None else {"draft": read_json(draft)}) | {"verify": data}
    if draft is not None:
        raise InvalidInput(
            f"--draft-runtime: this option requires a single fit as --runtime, but {path} has no"
            " 'form'; omit --draft-runtime"
        )
    return data


def _with_models(data: object, path: Path, configs: Mapping[str, Path | None]) -> object:
    """Return the runtimes in a file together with the models that are specified by options.

    It is an error to specify a model that the file already contains.
    """
    if not isinstance(data, Mapping):
        return data
    models = dict(data)
    for name, config in configs.items():
        runtime = data.get(name)
        fitted_with = runtime.get("model") if isinstance(runtime, Mapping) else None
        if config is None:
            continue
        if data.get(f"{name}_model") is not None or fitted_with is not None:
            raise InvalidInput(
                f"--{name}-model: {path} already contains a {name} model; omit this option"
            )
        models[f"{name}_model"] = dump(read_decoder(config))
    return models


@export.command()
def csv(result: Path = argument("RESULT", "Result file (JSON)."), output: Output = None) -> None:
    """Write the plan of a result as CSV.

    The file has one row per task, request, client, chunk or state.
    """
    _export(result, output, _csv)


@export.command()
def yaml(result: Path = argument("RESULT", "Result file (JSON)."), output: Output = None) -> None:
    """Write the plan of a result as YAML."""
    _export(result, output, _yaml)


@export.command()
def formulation(
    file: File,
    form: str = required("lp|mps", "Format of the file.", "--as"),
    output: Path = required(None, "Write to this file, all or nothing.", "-o", "--output"),
    option: list[str] | None = option(
        "NAME=VALUE", "Option of the formulation; serving-latency: length=L, mechanism=NAME."
    ),
) -> None:
    """Write a problem as a linear program; `specopt export FILE --as lp` does the same.

    Sets, variables and constraints have the same names as in the documentation.
    """
    check_target(output, file)
    options = {
        name: int(text) if text.isdecimal() else text
        for name, text in pairs_of(option or (), "--option").items()
    }
    problem = read_problem(file)
    say("building and writing the linear program ...")
    write_formulation(problem, output, form, **options)
    say_written(output)


def _export(path: Path, output: Path | None, write: Callable[[Result, Plan], str]) -> None:
    check_target(output, path)
    found = read_result(path)
    try:
        if found.plan is None:
            raise InvalidInput(f"plan: the result has no plan (its status is {found.status})")
        text = write(found, found.plan)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    hand_over(text, output)


def _csv(result: Result, plan: Plan) -> str:
    """Format the plan of a result as CSV with a header row."""
    rows = list(kind_of(result.kind).rows(plan))
    return csv_text([list(rows[0]) if rows else ["empty"], *(row.values() for row in rows)])


def _yaml(result: Result, plan: Plan) -> str:
    """Format the plan of a result as YAML, together with its method, objective and bound."""
    import yaml

    head = {
        name: value
        for name, value in result.to_dict().items()
        if name in ("kind", "problem_sha256", "method", "status", "objective", "bound", "gap")
    }
    data = {**head, "plan": plan.to_dict()}
    return str(yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=100))
