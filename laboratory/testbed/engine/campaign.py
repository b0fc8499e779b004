"""Measure every setting of the engine: no speculation, fixed drafts, and the table tuned on a part
of the results.

`python -m testbed.engine.campaign` is `make engine`. A setting whose file exists is not measured
again, and this is reported. The table is exported when all results that it depends on exist.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specopt.models.files import read_json, write_text
from specopt.models.sweep import Sweep
from testbed.engine.results import LENGTHS, TABLE, read_runs, seen, sweep_of
from testbed.engine.serve import ENVIRONMENT
from testbed.engine.tables import write_csv

RUNS = Path("laboratory/engine")
"""Folder of the raw results."""

PYTHON = os.environ.get("ENGINE_PYTHON", ".venv-engine/bin/python")
"""Python of the engine's own environment."""

DRAFTERS: Mapping[str, Mapping[str, Any]] = {
    "ngram": {"method": "ngram", "prompt_lookup_max": 4, "prompt_lookup_min": 2},
    "draft-model": {"method": "draft_model", "model": "draft"},
}
"""Drafters: the longest repetition in the preceding text, or the draft model."""

REPETITIONS = 2
"""Number of times that every setting is measured, from the start of an engine to its end. Each
repetition has its own folder.
"""

ALONE = ("none", *(f"{drafter}-3" for drafter in DRAFTERS))
"""Settings with which each kind of task is also served alone."""


def settings(drafter: str) -> dict[str, Mapping[str, Any]]:
    """Return the `speculative_config` of each fixed draft length. 0 is a table of zeros."""
    base = DRAFTERS[drafter]
    found: dict[str, Mapping[str, Any]] = {}
    for length in LENGTHS[drafter]:
        idle = {} if length else {"num_speculative_tokens_per_batch_size": [[1, 16, 0]]}
        found[str(length)] = {**base, "num_speculative_tokens": max(length, 1), **idle}
    return found


def measure(work: Path, name: str, setting: Mapping[str, Any] | None, repetition: int) -> None:
    """Measure a setting in its own process, unless its file exists and belongs to exactly this
    setting.
    """
    path = RUNS / str(repetition) / f"{name}.json"
    known: Any = read_json(path) if path.exists() else {}
    if known.get("speculative_config", name) == setting:
        print(
            f"{path}: measured {known['date']}, not again; remove the file to measure it here",
            flush=True,
        )
        return
    from testbed.checkpoints import DRAFT
    from testbed.engine.checkpoints import write_folders

    write_folders(work, DRAFT)
    path.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    arguments = [
        PYTHON,
        "-P",
        "-m",
        "testbed.engine.serve",
        str(work),
        json.dumps(setting),
        str(path),
    ]
    arguments += ["alone"] if name in ALONE else []
    here = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, env=here)
    print(f"{path}: {time.monotonic() - begin:.0f} s", flush=True)


def main(drafters: list[str], minutes: float) -> None:
    """Measure the missing settings, every setting once before any of them again. None starts after
    the given number of minutes.
    """
    work, last = Path("build/laboratory/engine"), time.monotonic() + 60.0 * minutes
    todo: list[tuple[str, Mapping[str, Any] | None]] = [("none", None)]
    for drafter in drafters:
        todo += [(f"{drafter}-{length}", setting) for length, setting in settings(drafter).items()]
    _measure_all(work, todo, last)
    todo.clear()
    for drafter in drafters:
        runs = read_runs(RUNS, drafter)
        if len(runs) < 1 + len(LENGTHS[drafter]):
            continue
        write_text(RUNS / f"{drafter}.csv", write_csv(sweep_of(runs, "tuning")))
        config = tune(
            RUNS / f"{drafter}-part.csv",
            seen(sweep_of(runs, "tuning")),
            RUNS / f"{drafter}-tuning.json",
        )
        if config is not None:
            todo.append((f"{drafter}-{TABLE}", {**DRAFTERS[drafter], **config}))
    _measure_all(work, todo, last)


def _measure_all(work: Path, todo: list[tuple[str, Mapping[str, Any] | None]], last: float) -> None:
    for repetition in range(1, 1 + REPETITIONS):
        for name, setting in todo[
            :: 1 if repetition % 2 else -1
        ]:  # so that drift affects the first settings as much as the last
            if time.monotonic() < last:
                measure(work, name, setting, repetition)


def tune(part: Path, sweep: Sweep, result: Path) -> Mapping[str, Any] | None:
    """Return the result of `specopt tune` for a sweep: a part of the `speculative_config`, or None
    for no speculation.
    """
    before, text = part.read_text() if part.exists() else "", write_csv(sweep)
    write_text(part, text)
    if text != before or not result.exists():
        subprocess.run(
            [sys.executable, "-P", "-m", "specopt", "tune", str(part), "-o", str(result)],
            check=True,
        )
    tuning: Any = read_json(result)
    found: Mapping[str, Any] | None = tuning["config"]
    return found


if __name__ == "__main__":
    main(sys.argv[1:] or list(DRAFTERS), float(os.environ.get("MINUTES", "inf")))
