"""Every setting of the engine in turn: no speculation, fixed drafts, and the table that tuning
makes of a part.

`python -m testbed.engine.campaign` is `make engine`. A setting whose file is there is not measured
again, and a line says so; the table is exported when everything that it rests on is there.
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
"""Where raw results are."""

PYTHON = os.environ.get("ENGINE_PYTHON", ".venv-engine/bin/python")
"""Of the engine's own environment."""

DRAFTERS: Mapping[str, Mapping[str, Any]] = {
    "ngram": {"method": "ngram", "prompt_lookup_max": 4, "prompt_lookup_min": 2},
    "draft-model": {"method": "draft_model", "model": "draft"},
}
"""What drafts: the longest repetition in the text so far, or the draft model."""

REPETITIONS = 2
"""Times that every setting is measured, from an engine's start to its end; a folder has a
repetition.
"""

ALONE = ("none", *(f"{drafter}-3" for drafter in DRAFTERS))
"""Settings under which each kind of task is served on its own, too."""


def settings(drafter: str) -> dict[str, Mapping[str, Any]]:
    """Return the `speculative_config` of each fixed draft length; 0 is a table of zeros."""
    base = DRAFTERS[drafter]
    found: dict[str, Mapping[str, Any]] = {}
    for length in LENGTHS[drafter]:
        idle = {} if length else {"num_speculative_tokens_per_batch_size": [[1, 16, 0]]}
        found[str(length)] = {**base, "num_speculative_tokens": max(length, 1), **idle}
    return found


def measure(work: Path, name: str, setting: Mapping[str, Any] | None, repetition: int) -> None:
    """Measure a setting in a process of its own, unless its file is there and of this very
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
    """Measure what is missing, every setting once before any again; none starts after that many
    minutes.
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
        ]:  # what drifts hits the first as often as the last
            if time.monotonic() < last:
                measure(work, name, setting, repetition)


def tune(part: Path, sweep: Sweep, result: Path) -> Mapping[str, Any] | None:
    """Return what `specopt tune` makes of a sweep: a part of the `speculative_config`, None for no
    speculation.
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
