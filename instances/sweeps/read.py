"""Reader for sweeps in any known format."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from specopt.instances.reading.fields import Fields
from specopt.instances.reading.json_documents import json_documents
from specopt.instances.reading.lines import Lines, open_lines
from specopt.instances.sweeps import (
    console,
    guidellm,
    llama_speed_bench,
    sglang,
    speculators,
    vllm,
)
from specopt.instances.sweeps.rows import Rows, Run
from specopt.instances.sweeps.source import DraftLength, parse_source
from specopt.instances.sweeps.spec_bundle import is_spec_bundle, spec_bundle_runs
from specopt.instances.sweeps.table import REQUIRED, csv_runs
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe, printable
from specopt.models.reading import StrPath, opened
from specopt.models.sweep import Sweep

KNOWN = (
    f"a CSV table ({', '.join(REQUIRED)}), results of vllm bench serve (JSON or console) or vllm"
    " bench sweep, a report of GuideLLM, lines of SGLang's bench_serving, llama.cpp's speed-bench,"
    " perf_results.csv of speculators, or a bundle of SpecForge"
)
READERS = (
    (guidellm.KEYS, guidellm.guidellm_runs),
    (llama_speed_bench.KEYS, llama_speed_bench.speed_bench_runs),
    (sglang.KEYS, lambda fields: [sglang.sglang_run(fields)]),
    (vllm.KEYS, lambda fields: [vllm.vllm_run(fields)]),
)
"""Pairs of identifying fields and a reader function, one pair for each program.

The fields identify the JSON results of a program, and the function reads these results.
"""

TABLES = (
    (console.KEYS, console.console_runs),
    (speculators.KEYS, speculators.perf_runs),
    (vllm.KEYS, vllm.summary_runs),
)
"""Pairs of identifying strings and a reader function, one pair for each kind of table.

The strings occur in the first line of a table. All other tables are read by `csv_runs`.
"""

_HEAD = 4096
"""Number of bytes read from the beginning of a file to recognise its format."""

_ACCEPTANCE = "acceptance; use it with --acceptance of `specopt plan` or `specopt export`"
OTHERS = {
    "sglang:spec_accept_length": _ACCEPTANCE,
    "acceptance_at_pos_0": _ACCEPTANCE,
    '"conditional_accept_rates"': _ACCEPTANCE,
    ",avg_ns,": "times of passes; use it with `specopt plan --runtimes`",
}
"""Descriptions of files that are not sweeps, keyed by a string that occurs near their beginning."""

SUMMARY = "summary.json"
MAX_FILES = 10_000
NO_RESULTS = (".pytorch.json", ".failure.json", "warmup.json")
"""Suffixes of the names of files that accompany or duplicate results. These files are skipped."""


def read_sweeps(
    sources: Iterable[StrPath],
    *,
    workload: str | None = None,
    model: str | None = None,
    draft: str | None = None,
) -> Sweep:
    """Read the runs in files or folders as one sweep.

    Failed runs are omitted, and a note states how many were omitted.

    Parameters
    ----------
    sources
        Paths of files or folders that contain CSV tables, results of ``vllm bench serve`` or
        ``vllm bench sweep serve``, GuideLLM reports, results of SGLang's ``bench_serving``, or
        SpecForge bundles. A string may end in ``@K`` or ``@none`` to specify the draft length of
        runs whose file does not contain the draft length; see `parse_source`.
    workload
        Workload whose runs are returned; None means all workloads.
    model
        Model whose runs are returned; required if there are several models.
    draft
        Drafter whose runs are returned; None means all drafters.

    Raises
    ------
    InvalidInput
        If a file cannot be read or does not contain a sweep, or if files contradict each other.
    """
    rows = Rows()
    seen: set[str] = set()
    for source in sources:
        path, length = parse_source(source) if isinstance(source, str) else (os.fspath(source), ...)
        if path in seen:
            raise InvalidInput(f"{path}: the file is given twice; give it once")
        seen.add(path)
        _read(rows, path, length)
    return rows.sweep(workload, model, draft)


def _read(rows: Rows, path: str, given: DraftLength) -> None:
    rows.where = path
    try:
        if os.path.isdir(path):
            runs: list[Run] = []
            for file in files_in(Path(path)):
                place = f"{printable(str(file.relative_to(path)))}, "
                runs += _runs(path, json_documents(file), place)
            rows.later(runs, given)
            return
        with opened(path) as stream:
            head = stream.read(_HEAD).decode("utf-8-sig", errors="replace").lstrip()
        for mark, holds in OTHERS.items():
            if mark in head:
                raise InvalidInput(f"{path}: expected throughput, got {holds}")
        if not head.startswith(("{", "[")):
            _read_table(rows, path, given)
            return
        documents = json_documents(path)
        if len(documents) == 1 and is_spec_bundle(documents[0]):
            rows.add(spec_bundle_runs(documents[0], rows), given)
        else:
            rows.later(_runs(path, documents, ""), given)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror or error})") from None


def _read_table(rows: Rows, path: str, given: DraftLength) -> None:
    with open_lines(path) as stream:
        lines = Lines(stream, path)
        first = lines.peek()[1]
        for keys, read in TABLES:
            if all(key in first for key in keys):
                rows.later(list(read(lines, rows)), given)
                return
        rows.add(csv_runs(lines, rows), given)


def _runs(where: str, documents: list[object], place: str) -> list[Run]:
    """Return the runs in a list of documents.

    Each document is a run, a report that contains several runs, or a list of documents.
    """
    listed = (one if isinstance(one, list) else [one] for one in documents)
    flat = [one for several in listed for one in several]
    found: list[Run] = []
    for number, document in enumerate(flat, start=1):
        fields = Fields(where, place if len(flat) == 1 else f"{place}run {number}, ", document)
        names = set(document) if isinstance(document, Mapping) else set()
        read = next((read for keys, read in READERS if keys <= names), None)
        if read is None:
            raise InvalidInput(f"{where}: {place}expected {KNOWN}; got {describe(document)}")
        found += read(fields)
    return found


def files_in(folder: Path) -> list[Path]:
    """Return the sorted paths of the JSON files that may contain runs, including subfolders.

    `vllm bench sweep` writes a file `summary.json` for each setting. If such files exist, only they
    are returned, because they contain all runs.

    Raises
    ------
    InvalidInput
        If the folder contains no files or too many files.
    """
    found = sorted(path for path in folder.rglob("*.json") if not path.name.endswith(NO_RESULTS))
    found = [path for path in found if path.name == SUMMARY] or found
    if not 0 < len(found) <= MAX_FILES:
        raise InvalidInput(
            f"{folder}: expected 1 to {MAX_FILES:,} JSON result files, got {len(found):,}"
        )
    return found
