"""Sweeps of every format, harmed at random: refused with a message that can be shown, or read."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzz.cases import harmed, harmed_bytes, harmed_lines
from helpers.sweeps import read_sweep

from specopt.models.errors import InvalidInput
from testbed.engine.tables import write_csv

CASES = int(os.environ.get("SPECOPT_FUZZ_FILES", "20"))
VLLM = {
    "model_id": "m",
    "max_concurrency": 8,
    "failed": 0,
    "output_throughput": 90.5,
    "dataset_name": "random",
    "random_input_len": 400,
    "spec_decode_acceptance_length": 2.5,
    "spec_decode_num_drafts": 100,
    "spec_decode_draft_tokens": 300,
    "spec_decode_per_position_acceptance_rates": [0.8, 0.5, 0.2],
    "speculative_config": {
        "num_speculative_tokens": 3,
        "num_speculative_tokens_per_batch_size": [[1, 64, 3]],
    },
}
SGLANG = {
    "max_concurrency": 8,
    "concurrency": 7.5,
    "output_throughput": 90.5,
    "mean_e2e_latency_ms": 9.0,
    "accept_length": 2.5,
    "server_info": {"decode": [{"speculative_num_steps": 3, "speculative_eagle_topk": 1}]},
}
GUIDELLM = {
    "benchmarks": [
        {
            "config": {
                "strategy": {"type_": "concurrent", "streams": 8},
                "backend": {"model": "m"},
            },
            "metrics": {
                "request_totals": {"errored": 0},
                "output_tokens_per_second": {"successful": {"mean": 90.5}},
            },
        }
    ]
}
METRICS = [
    {"Name": "Wihtout EAGLE3", "output_throughput": 80.5, "accept_length": 1.0},
    {"Name": "d", "output_throughput": 90.5, "accept_length": 2.5},
]
BUNDLE = {
    "m": {"gsm8k": {"results": [{"batch_size": 8, "steps": 3, "topk": 1, "metrics": METRICS}]}}
}
TABLE = (
    "concurrency,draft_length,output_tokens_per_second,mean_acceptance_length,context_tokens,workload,repeat\n"
    + "".join(
        f"8,{length},{90.5 + repeat},{accepted},400,chat,{repeat}\n"
        for length, accepted in (("none", ""), (0, ""), (3, 2.5))
        for repeat in (1, 2)
    )
)
SUMMARY = """,max_concurrency,output_throughput,speculative_config
0,8,80.5,
1,8,90.5,"{'num_speculative_tokens': 3}"
"""
LINES = f"{json.dumps(SGLANG)}\n{json.dumps(SGLANG)}"


def document(content: dict[str, Any]) -> Callable[[random.Random], str]:
    """Return what harms a document."""
    schema = {"properties": {key: {"type": "object"} for key in content}}
    return lambda rng: harmed(rng, content, schema)


def lines(content: str) -> Callable[[random.Random], str]:
    """Return what harms a text by its lines."""
    return lambda rng: harmed_lines(rng, content)


FILES: dict[str, tuple[str, Callable[[random.Random], str]]] = {
    "vllm": (json.dumps(VLLM), document(VLLM)),
    "sglang": (json.dumps(SGLANG), document(SGLANG)),
    "sglang lines": (
        f"{json.dumps(SGLANG)}\n{json.dumps(SGLANG)}",
        lines(f"{json.dumps(SGLANG)}\n{json.dumps(SGLANG)}"),
    ),
    "guidellm": (json.dumps(GUIDELLM), document(GUIDELLM)),
    "bundle": (json.dumps(BUNDLE), document(BUNDLE)),
    "table": (TABLE, lines(TABLE)),
    "summary": (SUMMARY, lines(SUMMARY)),
}


@pytest.mark.parametrize("name", FILES)
def test_harmed_files_are_refused_or_read(name: str, tmp_path: Path) -> None:
    """Tests that harmed files of every format end in a message that can be shown, or in a sweep."""
    content, harm = FILES[name]
    path = tmp_path / "sweep"
    given = 3 if name == "guidellm" else ...
    path.write_text(content)
    assert read_sweep(path, draft_length=given).draft_lengths[-1] == 3
    read = 0
    for number in range(CASES):
        rng = random.Random(f"{name} {number}")
        torn = rng.random() < 0.15
        data = (
            harmed_bytes(rng, content.encode())
            if torn
            else harm(rng).encode("utf-8", "surrogatepass")
        )
        path.write_bytes(data)
        try:
            sweep = read_sweep(path, draft_length=given)
        except InvalidInput as error:
            assert str(error).isprintable(), (number, data[:500])
            continue
        read += 1
        assert all(one.isprintable() for one in (*sweep.notes, *sweep.workloads)), (
            number,
            data[:500],
        )
        path.write_text(write_csv(sweep), encoding="utf-8", newline="")
        assert read_sweep(path).measurements == sweep.measurements, (number, data[:500])
    assert 0 < read < CASES
