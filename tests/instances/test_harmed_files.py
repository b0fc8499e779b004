"""Files of every reader, harmed at random: refused with a message that can be shown, or read."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from fuzz import input_files as files
from fuzz.cases import harmed as harmed_json
from fuzz.cases import harmed_bytes, harmed_lines
from fuzz.json_tree import text
from fuzz.junk import junk
from helpers.sweeps import read_sweep
from strategies.traces import EXAMPLES

from specopt.instances.acceptance import read_acceptance
from specopt.instances.runtimes.table import TableColumns, read_runtime_table
from specopt.instances.traces import read_trace
from specopt.models.acceptance_lengths import AcceptanceLengths
from specopt.models.errors import InvalidInput
from testbed.engine.tables import write_csv

CASES = int(os.environ.get("SPECOPT_FUZZ_FILES", "30"))
"""Number of harmed versions of each file."""


def sweep(path: Path, draft_length: object = ...) -> None:
    """Read a sweep and check that it can be shown, written and read again."""
    found = read_sweep(path, draft_length)
    assert all(one.isprintable() for one in (*found.notes, *found.workloads))
    path.write_text(write_csv(found), encoding="utf-8", newline="")
    assert read_sweep(path).measurements == found.measurements


def acceptance(path: Path) -> None:
    """Read acceptance and check that rates lie within their limits and lengths are finite."""
    found = read_acceptance(path)
    if isinstance(found, AcceptanceLengths):
        assert np.isfinite(found.expected_tokens(found.max_drafts or 0)).all()
    else:
        assert (found.lower >= 0.0).all()
        assert (found.lower <= found.rates).all()
        assert (found.rates <= found.upper).all()
        assert np.isfinite(found.expected_tokens(len(found.rates))).all()


def passes(path: Path, sum_over: str | None = None) -> None:
    """Read measured passes and check that their times are positive and finite."""
    columns = TableColumns(x=("tokens",), y=("time_ms",), y_unit="ms", sum_over=sum_over)
    found = read_runtime_table(path, columns)
    assert len(found) > 0
    assert np.isfinite(found.keys).all()
    assert ((found.seconds > 0.0) & (found.seconds < np.inf)).all()


def trace(path: Path) -> None:
    """Read a trace and check that it begins at 0, has tokens, and counts its rows."""
    found = read_trace(path)
    assert found.rows_read == len(found) + found.dropped_rows
    assert found.input_tokens.min() >= 1 and found.output_tokens.min() >= 1
    assert found.arrival_seconds[0] == 0.0


BUNDLE = """{"m": {"gsm8k": {"results": [{"batch_size": 8, "steps": 3, "topk": 1, "metrics": [
    {"Name": "Wihtout EAGLE3", "output_throughput": 80.5, "accept_length": 1.0},
    {"Name": "d", "output_throughput": 90.5, "accept_length": 2.5}]}]}}}"""
SUMMARY = """,max_concurrency,output_throughput,speculative_config
0,8,80.5,
1,8,90.5,"{'num_speculative_tokens': 3}"
"""
STEPS = """{"acceptance_histogram": [1, 2, 3], "per_step_drafted": [2, 2, 2, 2, 2, 2],
    "per_step_accepted": [1, 1, 1, 1, 1, 1]}"""
APART = '{"acceptance_histogram_by_draft_length": {"1": [3, 4], "3": [1, 0, 2, 5]}}'
LENGTHS = '{"acceptance_lengths": {"1": 1.5, "2": 1.9}, "lower": {"1": 1.4, "2": 1.8}}'

FILES: dict[str, tuple[Callable[[Path], None], str]] = {
    "runs of vLLM": (sweep, json.dumps(files.BENCH)),
    "runs of SGLang": (partial(sweep, draft_length=3), "\n".join(map(json.dumps, files.SGLANG))),
    "report of GuideLLM": (partial(sweep, draft_length=3), json.dumps(files.GUIDELLM)),
    "bundle of SpecForge": (sweep, BUNDLE),
    "summary of vLLM": (sweep, SUMMARY),
    "sweep": (sweep, files.SWEEP),
    "sweep with drafters": (sweep, files.DRAFTERS),
    "golden lengths": (acceptance, '{"a": {"b": {"1": 1.5, "2": 1.9}}}'),
    "own lengths": (acceptance, LENGTHS),
    "own rates": (acceptance, json.dumps(files.PLAIN)),
    "benchmark of vLLM": (acceptance, json.dumps(files.BENCH)),
    "histogram": (acceptance, json.dumps(files.HISTOGRAM)),
    "histogram by length": (acceptance, APART),
    "steps": (acceptance, STEPS),
    "scrape": (acceptance, files.SCRAPE),
    "passes": (passes, files.TABLE),
    "layers": (partial(passes, sum_over="model"), files.TABLE),
    **{f"trace {name}": (trace, content.decode()) for name, content in EXAMPLES.items()},
}


def with_harm(rng: random.Random, content: str) -> bytes:
    """Return another JSON value, or a file after some harm to its bytes, its lines or, if it is
    JSON, its values.
    """
    way = rng.random()
    if way < 0.1:
        return harmed_bytes(rng, content.encode())
    if way < 0.2:
        harmed = text(junk(rng))
    elif not content.startswith("{") or "\n{" in content:
        harmed = harmed_lines(rng, content)
    else:
        data = json.loads(content)
        harmed = harmed_json(rng, data, {"properties": {key: {"type": "object"} for key in data}})
    return harmed.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("name", FILES)
def test_harmed_files_are_refused_or_read(name: str, tmp_path: Path) -> None:
    """Tests that a whole file is read, and that a harmed one is read or refused in one line."""
    read, content = FILES[name]
    path = tmp_path / "file"
    path.write_text(content, newline="")
    read(path)
    refused = 0
    for number in range(CASES):
        data = with_harm(random.Random(f"{name} {number}"), content)
        path.write_bytes(data)
        try:
            read(path)
        except InvalidInput as error:
            refused += 1
            assert str(error).isprintable(), (number, data[:500])
    assert refused
