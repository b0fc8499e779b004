"""`specopt validate`: compare a prediction with the user's server."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from specopt.commands.measure import numbers_of
from specopt.commands.options import argument, filled, from_fields, option
from specopt.commands.shared import FOUND, INTERRUPTED, AsJson, Output, check_target, print_json
from specopt.console.streams import say

if TYPE_CHECKING:
    from specopt.measuring.client import Client
    from specopt.measuring.record import Record
    from specopt.solvers.speculation_table.held import OfSweep, Prediction

MAX_PROMPTS = 512
"""Number of prompts that are made from a trace."""

MAX_LOADS = 4096
"""Maximum number of concurrent requests; each is a thread."""


@dataclass(frozen=True, kw_only=True)
class Validate:
    """What `validate` takes."""

    source: list[str] = argument(
        "PLAN|SWEEP...",
        "What predicts: what tune wrote, or a sweep as it takes it; with --acceptance runtimes as"
        " plan takes them.",
    )
    endpoint: str = option("URL", "Where the server answers.", default="http://127.0.0.1:8000")
    model: str | None = option("NAME", "That it serves; default: its first one.")
    loads: str | None = option("N,...", "Requests at a time; default: those of the prediction.")
    draft_length: str | None = option(
        "K", "Of the running server, or none; default: as its counters have positions."
    )
    prompts: Path | None = option(
        "FILE", "Prompts, one a line; default: stories, or words as long as --trace says."
    )
    trace: Path | None = option(
        "FILE", "Requests, as import reads them: how long prompts and answers are."
    )
    tokens: int = option("N", "Tokens of an answer where no trace says it.", default=256)
    seconds: float = option("S", "How long a load lasts.", default=60.0)
    requests: int | None = option(
        "N", "That a load has at most; default: as many as its seconds allow."
    )
    patience: float = option(
        "S", "Time limit of a request, from its start to the end of its answer.", default=600.0
    )
    failures: float = option(
        "SHARE", "Share of the requests of a load that may fail, each tried twice.", default=0.05
    )
    load_generator: str = option(
        "own|guidellm|vllm",
        "What loads it; options of theirs may follow, in the same word.",
        default="own",
    )
    acceptance: Path | None = option(
        "FILE", "Of runtimes: rates of acceptance, as export reads them."
    )
    draft: str | None = option("NAME", "The drafter to take from a sweep with several.")
    workload: str | None = option("NAME", "The workload to take.")
    draft_config: Path | None = option(
        "CONFIG", "Of runtimes: the draft model's Hugging Face config.json."
    )
    verify_config: Path | None = option("CONFIG", "The verify model's.")
    record: Path = option(
        "FILE", "Keeps every load; the same command goes on from it.", default=Path("validate.json")
    )
    acceptance_output: Path | None = option(
        "FILE", "Write the measured acceptance, as plan --acceptance takes it."
    )
    as_json: AsJson = False
    output: Output = None


@from_fields
def validate(given: Validate) -> int:
    """Hold a prediction against your own server, and correct what it rests on.

    Loads an OpenAI-compatible server as predicted, reads acceptance from its /metrics, and prints
    predicted against measured output, the order of options and what is off. The output is the sweep
    or the runtimes, corrected, for tune and plan.
    """
    from specopt.measuring.record import Record
    from specopt.models.files import json_text, write_text
    from specopt.solvers.speculation_table.held import report

    for target in (given.output, given.acceptance_output, given.record):
        for source in given.source:
            check_target(target, Path(source))
    prediction, client, code = _prediction(given), _client(given), FOUND
    asked = hashlib.sha256(repr((client.prompts, client.max_tokens)).encode()).hexdigest()[:12]
    settings = (
        f"{given.model or 'any model'}, {given.load_generator}, {given.seconds:g} s, prompts"
        f" {asked}"
    )
    settings += "" if given.requests is None else f", {given.requests} requests"
    record = Record.open(given.record, settings)
    if given.prompts is None:
        say(
            "prompts are synthetic: their acceptance is not that of your work; --prompts takes"
            " yours"
        )
    try:
        _load(given, prediction, client, record)
    except KeyboardInterrupt:
        if not record.loads:
            raise
        code = INTERRUPTED
    finally:
        if record.loads:
            say(
                f"{given.record} keeps {len(record.loads)} loads; the same command goes on from"
                " there"
            )
    data = report(prediction, record.loads)
    if given.as_json:
        print_json(data)
    else:
        from specopt.console.terminal import console
        from specopt.views.validation import print_validation

        print_validation(data, console())
    rates = data["acceptance"] and json_text(data["acceptance"])
    for path, text in (
        (given.output, prediction.corrected(record.loads)),
        (given.acceptance_output, rates),
    ):
        if path is not None and text:
            write_text(path, text)
            say(f"written to {path}")
    return code


def _load(given: Validate, prediction: Prediction, client: Client, record: Record) -> None:
    """Drive the loads that the record lacks."""
    from specopt.measuring.external import External
    from specopt.measuring.record import drive
    from specopt.models.arguments import integer
    from specopt.models.errors import InvalidInput

    loads = prediction.loads if given.loads is None else numbers_of("--loads", given.loads)
    for load in loads:
        integer("--loads", load, 1, MAX_LOADS)
    length, other = given.draft_length, None
    if given.load_generator != "own":
        other = External(given.load_generator, client, given.model or client.models()[0])
    drafts = positions = len(client.counted()[2:]) or None
    if length is not None:
        drafts = None if length == "none" else numbers_of("--draft-length", length)[0]
        if positions not in (None, drafts):
            raise InvalidInput(
                f"--draft-length: expected {positions}, the positions that the server counts, got"
                f" {length}"
            )
    elif positions is None:
        say(
            f"no counters of drafts at {client.endpoint}/metrics: no drafts are assumed;"
            " --draft-length K says otherwise"
        )
    drive(
        record,
        given.record,
        client,
        {load: prediction.at(load, drafts)[0] for load in loads},
        drafts,
        other,
    )


def _prediction(given: Validate) -> Prediction:
    """Return what predicts: runtimes with acceptance, or a sweep."""
    from specopt.instances.acceptance import read_acceptance
    from specopt.instances.checkpoints.model_config import read_model_config
    from specopt.instances.deployment.passes import Passes
    from specopt.instances.runtimes.measured import FORM
    from specopt.instances.sweeps import read_sweeps
    from specopt.solvers.speculation_table.held import OfPasses, OfSweep

    if given.acceptance is None:
        plan = _plan(given.source[0]) if len(given.source) == 1 else None
        if plan is not None:
            return plan
        return OfSweep(
            read_sweeps(given.source, workload=given.workload, draft=given.draft), given.source[0]
        )
    configs = ("draft", given.draft_config), ("verify", given.verify_config)
    models = {name: read_model_config(path) for name, path in configs if path}
    data = Passes.read(given.source[0], models).runtimes(FORM)
    return OfPasses(data, given.source[0], read_acceptance(given.acceptance))


def _plan(source: str) -> OfSweep | None:
    """Return the predictions of a result of `tune`; None: it is another file."""
    from specopt.instances.reading.json_documents import json_documents
    from specopt.models.reading import read_bytes
    from specopt.solvers.speculation_table.held import planned

    if not Path(source).is_file() or not read_bytes(source).lstrip().startswith(b"{"):
        return None
    data, *more = json_documents(source)
    return (
        planned(data, source)
        if not more and isinstance(data, dict) and "predictions" in data
        else None
    )


def _client(given: Validate) -> Client:
    """Return a client with the user's prompts, or with synthetic ones of the trace's lengths."""
    from specopt.instances.traces import read_trace
    from specopt.measuring.client import MANY, PROMPTS, Client
    from specopt.models.reading import read_text

    prompts, tokens = PROMPTS, (given.tokens,)
    if given.trace is not None:
        trace, words = read_trace(given.trace), " ".join(PROMPTS).split()
        sizes = enumerate(trace.input_tokens[:MAX_PROMPTS].tolist())
        prompts = tuple(" ".join(islice(cycle(words), at, at + max(1, size))) for at, size in sizes)
        tokens = tuple(max(1, size) for size in trace.output_tokens[:MAX_PROMPTS].tolist())
    if given.prompts is not None:
        prompts = tuple(filter(str.strip, read_text(given.prompts).splitlines()))
    requests = MANY if given.requests is None else given.requests
    return filled(Client, given, prompts=prompts, max_tokens=tokens, requests=requests)
