"""Reader for the results of `vllm bench serve` and `vllm bench sweep serve`.

The results of a sweep also contain the parameters of the server. A parameter is either a field such
as `speculative_config.num_speculative_tokens`, or part of the field `speculative_config`. That
field contains an object, a JSON string, or a Python dict (in summary.csv). Without a sweep, the
option `--metadata num_speculative_tokens=3` adds the draft length to a result.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping

from specopt.instances.reading.fields import CsvFile, Fields
from specopt.instances.reading.lines import Lines
from specopt.instances.sweeps.rows import Rows, Run
from specopt.instances.sweeps.source import NO_SPECULATION, DraftLength
from specopt.models.sweep import ONLY, Setup

TOKENS = "num_speculative_tokens"
SCHEDULE = "num_speculative_tokens_per_batch_size"
CONFIG = "speculative_config"
VARIES = "whose draft length changes with the batch"
LATENCY = {
    "mean_tpot_ms": "mean_tpot_ms",
    "p50_tpot_ms": "median_tpot_ms",
    "p99_tpot_ms": "p99_tpot_ms",
    "mean_ttft_ms": "mean_ttft_ms",
}
KEYS = {"output_throughput"}
"""Fields whose presence identifies a result, or a table of results such as `summary.csv`."""

_LONGEST_PARAMETER = 10_000


def summary_runs(lines: Lines, rows: Rows) -> Iterator[Run]:
    """Yield the run described by each row of a table.

    Raises
    ------
    InvalidInput
        If a row is malformed, or if a field has an invalid value. The message states the line and
        the column.
    """
    table = CsvFile(lines)
    table.header = [name.replace("-", "_") for name in table.header]
    yield from map(vllm_run, table)


def vllm_run(fields: Fields) -> Run:
    """Return the run described by a result.

    Raises
    ------
    InvalidInput
        If a field has an invalid value. The message names the field.
    """
    concurrency = fields.integer("max_concurrency")
    said = _said(fields, concurrency)
    return Run(
        fields=fields,
        tokens_per_second=fields.number("output_throughput"),
        concurrency=concurrency,
        said=_counted(fields) if said is ... else said,
        acceptance_length=fields.number("spec_decode_acceptance_length") or None,
        program="vLLM",
        failed=fields.number("failed"),
        workload=fields.text("workload", "dataset_name"),
        context_tokens=context(fields),
        model=fields.text("model_id"),
        setup=Setup(_method(fields)) if said is not None else ONLY,
        also=latency(fields),
    )


def _method(fields: Fields) -> str:
    """Return the name of the drafter in the parameters or metadata, or an empty string."""
    config = _parsed(fields.values.get(CONFIG))
    inner = config.get("method") if isinstance(config, Mapping) else None
    return inner if isinstance(inner, str) else fields.text("drafter", f"{CONFIG}.method", "method")


def latency(fields: Fields) -> dict[str, float]:
    """Return the latencies in a result, and the mean number of output tokens per request."""
    tokens, requests = fields.number("total_output_tokens"), fields.number("completed")
    mean = {"output_tokens": tokens / requests} if tokens and requests else {}
    return fields.numbers(LATENCY) | mean


def context(fields: Fields) -> int:
    """Return the number of tokens per prompt if all prompts have the same length, otherwise 0."""
    synthetic = fields.text("dataset_name") or "random"
    more = ("random_input_len", "input_len") if synthetic.startswith("random") else ()
    return fields.integer("context_tokens", *more) or 0


def _said(fields: Fields, concurrency: int | None) -> DraftLength | str:
    """Return the draft length that the server's parameters specify.

    The result is ``...`` if the parameters do not determine the draft length, and a string that
    states the reason if the draft length varies.
    """
    config = _parsed(fields.values.get(CONFIG))
    if isinstance(config, str) and config.lower() == NO_SPECULATION:
        return None
    if config is not None and not isinstance(config, Mapping):
        raise fields.refuse(CONFIG, "an object", config)
    inner = {f"{CONFIG}.{key}": value for key, value in (config or {}).items()}
    flat = Fields(fields.where, fields.place, fields.values | inner)
    if str(flat.values.get("draft_length", "")).lower() == NO_SPECULATION:
        return None
    most = flat.integer("draft_length", TOKENS, f"{CONFIG}.{TOKENS}")
    schedule = _parsed(flat.values.get(f"{CONFIG}.{SCHEDULE}", flat.values.get(SCHEDULE)))
    if schedule is not None:
        return _scheduled(fields, schedule, concurrency, most)
    return ... if most is None else most


def _scheduled(
    fields: Fields, schedule: object, concurrency: int | None, most: int | None
) -> DraftLength | str:
    """Return the draft length that a schedule specifies for the batch sizes in use.

    Batch sizes up to the concurrency are in use, and the last range of a schedule also applies to
    larger batches. If the draft length varies, the result is a string that says so.
    """
    lengths = []
    for entry in schedule if isinstance(schedule, list) else [schedule]:
        if not isinstance(entry, list) or [type(one) for one in entry] != [int] * 3:
            raise fields.refuse(
                SCHEDULE, "ranges [first batch, last batch, draft length]", schedule
            )
        if concurrency is None or entry[0] <= concurrency:
            lengths.append(entry[2] if most is None else min(entry[2], most))
    if not lengths:
        return ...
    return lengths[0] if len(set(lengths)) == 1 else VARIES


def _counted(fields: Fields) -> DraftLength:
    """Return the draft length implied by the counts of drafts, or ``...`` if it is not determined.

    With counts by position, the draft length is the number of positions, provided that the mean
    number of drafted tokens per step is close to that number. Without counts by position, the draft
    length is the mean number of drafted tokens if this mean is an integer.
    """
    rates = _parsed(fields.values.get("spec_decode_per_position_acceptance_rates"))
    drafts = fields.number("spec_decode_num_drafts")
    tokens = fields.number("spec_decode_draft_tokens")
    if not drafts or tokens is None:
        return ...
    positions = len(rates) if isinstance(rates, list) else 0
    length, near = (positions, 0.5) if positions else (round(tokens / drafts), 1e-3)
    return length if abs(tokens - length * drafts) <= near * drafts else ...


def _parsed(value: object) -> object:
    """Return the value that a string represents in JSON or Python notation.

    A string in neither notation is returned unchanged.
    """
    if not isinstance(value, str) or len(value) > _LONGEST_PARAMETER:
        return value
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
    return value
