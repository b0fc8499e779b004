"""Reader for the summary that `vllm bench serve` prints to the console when it finishes.

A file contains one or more of these summaries, called blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from specopt.instances.reading.fields import Fields
from specopt.instances.reading.lines import Lines
from specopt.instances.sweeps.rows import Rows, Run
from specopt.instances.sweeps.vllm import vllm_run

HEAD = "Serving Benchmark Result"
KEYS = {HEAD}
"""Strings in the first line of a file that identify this format."""

NAMES = {
    "Successful requests": "completed",
    "Failed requests": "failed",
    "Maximum request concurrency": "max_concurrency",
    "Total generated tokens": "total_output_tokens",
    "Output token throughput (tok/s)": "output_throughput",
    "Mean TTFT (ms)": "mean_ttft_ms",
    "Mean TPOT (ms)": "mean_tpot_ms",
    "Median TPOT (ms)": "median_tpot_ms",
    "P99 TPOT (ms)": "p99_tpot_ms",
    "Acceptance length": "spec_decode_acceptance_length",
    "Drafts": "spec_decode_num_drafts",
    "Draft tokens": "spec_decode_draft_tokens",
}
"""Mapping from printed labels to the corresponding fields in the benchmark's JSON output."""

_LINE = re.compile(r"\s*([^:]+):\s*(\S+)\s*")


def console_runs(lines: Lines, rows: Rows) -> Iterator[Run]:
    """Yield the run described by each summary.

    Raises
    ------
    InvalidInput
        If a field has an invalid value. The message names the field.
    """
    for number, block in enumerate("".join(lines).split(HEAD)[1:], start=1):
        matches = filter(None, map(_LINE.fullmatch, block.splitlines()))
        found = {NAMES[match[1]]: match[2] for match in matches if match[1] in NAMES}
        yield vllm_run(Fields(rows.where, f"block {number}, ", found))
