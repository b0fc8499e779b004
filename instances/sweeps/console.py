"""The final console output of `vllm bench serve`, saved in a file with one or several blocks."""

from __future__ import annotations

import re

from specopt.instances.reading.fields import Fields
from specopt.instances.sweeps.rows import Run
from specopt.instances.sweeps.vllm import vllm_run

HEAD = "Serving Benchmark Result"
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
"""Fields of the JSON output of the same benchmark, by their printed labels."""

_LINE = re.compile(r"\s*([^:]+):\s*(\S+)\s*")


def is_console(head: str) -> bool:
    """Return whether a text with this beginning is such an output."""
    return HEAD in head


def console_runs(text: str, where: str) -> list[Run]:
    """Return the run of each block.

    Raises
    ------
    InvalidInput
        If a field has an invalid value; the message contains the field.
    """
    runs = []
    for number, block in enumerate(text.split(HEAD)[1:], start=1):
        lines = filter(None, map(_LINE.fullmatch, block.splitlines()))
        found = {NAMES[match[1]]: match[2] for match in lines if match[1] in NAMES}
        runs.append(vllm_run(Fields(where, f"block {number}, ", found)))
    return runs
