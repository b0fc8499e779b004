"""The command `specopt validate`, which compares a prediction with measurements on a server."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from specopt.commands.measure import numbers_of
from specopt.commands.shared import (
    FOUND,
    INTERRUPTED,
    AsJson,
    Output,
    argument,
    check_target,
    console,
    filled,
    option,
    print_json,
)
from specopt.console.streams import say
from specopt.models.reading import read_bytes, read_text

if TYPE_CHECKING:
    from specopt.measuring.client import Client
    from specopt.measuring.record import Record
    from specopt.solvers.speculation_table.held import OfSweep, Prediction

MAX_PROMPTS = 512
"""Maximum number of prompts that are created from a trace."""

MAX_LOADS = 4096
"""Maximum number of concurrent requests. Each request uses a thread."""


@dataclass(frozen=True, kw_only=True)
class Validate:
    """Values of the arguments and options of `specopt validate`."""

    source: list[str] = argument(
        "PLAN|SWEEP...",
        "Prediction to validate: output of tune, or a sweep that tune accepts. With --acceptance:"
        " runtimes that plan accepts.",
    )
    endpoint: str = option("URL", "URL of the server.", default="http://127.0.0.1:8000")
    model: str | None = option("NAME", "Name of the model on the server; default: the first one.")
    loads: str | None = option(
        "N,...", "Numbers of concurrent requests; default: those of the prediction."
    )
    draft_length: str | None = option(
        "K", "Draft length of the running server, or none; default: read from its counters."
    )
    prompts: Path | None = option(
        "FILE",
        "File of prompts, one per line; default: stories, or words with the lengths in --trace.",
    )
    trace: Path | None = option(
        "FILE",
        "Trace with the lengths of prompts and answers, in a format that import accepts.",
    )
    tokens: int = option("N", "Number of tokens per answer, if no trace is given.", default=256)
    seconds: float = option("S", "Duration of a load, in seconds.", default=60.0)
    requests: int | None = option(
        "N", "Maximum number of requests per load; default: limited only by its duration."
    )
    patience: float = option(
        "S",
        "Time limit in seconds from the start of a request to the end of its answer.",
        default=600.0,
    )
    failures: float = option(
        "SHARE",
        "Maximum share of failed requests per load; each request is tried twice.",
        default=0.05,
    )
    load_generator: str = option(
        "own|guidellm|vllm",
        "Load generator; its options may follow in the same argument.",
        default="own",
    )
    acceptance: Path | None = option(
        "FILE",
        "Measured acceptance, in a format that export accepts; for a prediction from runtimes.",
    )
    draft: str | None = option("NAME", "Name of the drafter to use if a sweep contains several.")
    workload: str | None = option(
        "NAME", "Name of the workload to use if a sweep contains several."
    )
    draft_config: Path | None = option(
        "CONFIG", "Hugging Face config.json of the draft model; for a prediction from runtimes."
    )
    verify_config: Path | None = option(
        "CONFIG", "Hugging Face config.json of the verify model; for a prediction from runtimes."
    )
    record: Path = option(
        "FILE",
        "File with all measured loads; the same command resumes from it.",
        default=Path("validate.json"),
    )
    acceptance_output: Path | None = option(
        "FILE", "Write the measured acceptance to this file, for plan --acceptance."
    )
    as_json: AsJson = False
    output: Output = None


def validate(given: Validate) -> int:
    """Compare a prediction with measurements on your own server, and correct the underlying data.

    The command runs the predicted loads on an OpenAI-compatible server and reads the acceptance
    from the server's /metrics endpoint. It prints predicted and measured throughput, the ranking of
    the options, and the largest errors. The output is a corrected sweep for tune, or corrected
    runtimes for plan.
    """
    from specopt.measuring.record import Record
    from specopt.models.files import json_text, write_text
    from specopt.solvers.speculation_table.held import report

    for target in (given.output, given.acceptance_output, given.record):
        check_target(target, *map(Path, given.source))
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
            "prompts are synthetic, so their acceptance differs from that of your workload; use"
            " --prompts for your own"
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
                f"{given.record} contains {len(record.loads)} loads; run the same command again to"
                " continue"
            )
    data = report(prediction, record.loads)
    if given.as_json:
        print_json(data)
    else:
        from specopt.views.speculation_table import print_validation

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
    """Measure each load that has a prediction but is not yet in the record of measurements."""
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
                f"--draft-length: expected {positions}, as in the counters of the server, got"
                f" {length}"
            )
    elif positions is None:
        say(
            f"{client.endpoint}/metrics has no counters of drafts, so the server is assumed not to"
            " speculate; give --draft-length K if it does"
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
    """Return the prediction to validate.

    It is computed from runtimes and acceptance, or from a measured sweep.
    """
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
    """Return the predictions in a file that `tune` wrote, or None for any other file."""
    from specopt.instances.reading.json_documents import json_documents
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
    """Return a client for the server, with prompts from the user or synthetic prompts.

    If a trace is specified, the synthetic prompts have the lengths in the trace.
    """
    from specopt.instances.traces import read_trace
    from specopt.measuring.client import MANY, PROMPTS, Client

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
