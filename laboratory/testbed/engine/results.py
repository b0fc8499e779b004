"""What the engine's raw results say: sweeps, the table that tuning makes of a part, predicted against measured, regret.

An engine on one thread is busy all the time that it serves, so that throughput is tokens per processor second: the same
as on the clock where nothing else runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.files import read_json
from specopt.models.sweep import Condition, Measurement, Point, Sweep
from specopt.solvers.speculation_table.tuning.goal import Goal
from specopt.solvers.speculation_table.tuning.grid import column_of
from specopt.solvers.speculation_table.tuning.tuner import Tuner
from specopt.solvers.speculation_table.tuning.tuning import Tuning
from testbed.engine.loads import MIXED, REQUESTS

FORMAT = "specopt-engine/1"
LENGTHS = {"ngram": (0, 1, 2, 3, 5), "draft-model": (1, 3)}
"""Draft lengths of each drafter; the draft model costs too much here for more to be of use."""
TABLE = "table"

SEEN_LENGTHS, SEEN_CONCURRENCIES = (None, 1, 3, 5), (1, 4, 16)
"""The part that tuning sees; it predicts the rest."""

Runs = Mapping[str, Mapping[str, Any]]
"""Raw results by setting: "none", a draft length, or `TABLE`."""


def read_runs(folder: Path, drafter: str) -> dict[str, dict[str, Any]]:
    """Return the results of a drafter's settings that are there, and those without speculation.

    Raises
    ------
    InvalidInput
        If a file holds something else.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in ("none", *map(str, LENGTHS[drafter]), TABLE):
        path = folder / ("none.json" if name == "none" else f"{drafter}-{name}.json")
        if path.exists():
            data = read_json(path)
            if not isinstance(data, dict) or data.get("format") != FORMAT:
                raise InvalidInput(f"{path}: expected results of an engine, format {FORMAT}")
            found[name] = data
    return found


def throughput(load: Mapping[str, Any]) -> float:
    """Return tokens per processor second of a load."""
    return float(load["tokens"] / load["processor_seconds"])


def acceptance_length(load: Mapping[str, Any]) -> float | None:
    """Return mean tokens of a step in which a sequence had drafts; None where nothing was drafted."""
    counters = load["counters"]
    return 1.0 + counters["accepted_tokens"] / counters["drafts"] if counters.get("drafts") else None


def mixed(run: Mapping[str, Any], prompts: str) -> list[Mapping[str, Any]]:
    """Return a run's loads of all kinds of task on a set of prompts."""
    return [load for load in run["loads"] if load["workload"] == MIXED and load["prompts"] == prompts]


def sweep_of(runs: Runs, prompts: str) -> Sweep:
    """Return the mixed loads of fixed settings as a sweep."""
    return Sweep(
        tuple(
            Measurement(Point(Condition(load["concurrency"]), None if name == "none" else int(name)), throughput(load))
            for name, run in runs.items()
            if name != TABLE
            for load in mixed(run, prompts)
        )
    )


def seen(sweep: Sweep) -> Sweep:
    """Return the part of a sweep that tuning sees."""
    return Sweep(
        tuple(
            one
            for one in sweep.measurements
            if one.point.draft_length in SEEN_LENGTHS and one.point.condition.concurrency in SEEN_CONCURRENCIES
        )
    )


def tuned(runs: Runs) -> Tuning:
    """Return what tuning makes of its part of the tuning prompts."""
    return Tuner.from_sweep(seen(sweep_of(runs, "tuning")), Goal(concurrencies=tuple(REQUESTS))).result()


@dataclass(frozen=True)
class Predicted:
    """A point that tuning did not see: predicted and measured throughput, and whether its band held."""

    point: Point
    prompts: str
    predicted: float
    measured: float
    held: bool

    @property
    def error(self) -> float:
        """Prediction over measurement, less 1."""
        return self.predicted / self.measured - 1.0


def predictions(runs: Runs) -> list[Predicted]:
    """Return the points of either set of prompts that tuning did not see; of unseen prompts, all."""
    grid = tuned(runs).grid
    found = []
    for prompts in ("tuning", "unseen"):
        sweep = sweep_of(runs, prompts)
        known = seen(sweep).measurements if prompts == "tuning" else ()
        for one in sweep.measurements:
            if one in known:
                continue
            row = grid.row(one.point.condition.concurrency)
            column = column_of(one.point.draft_length)
            speed = one.tokens_per_second
            assert speed is not None, "every run has one"
            low, high = float(grid.low[row, column]), float(grid.high[row, column])
            found.append(Predicted(one.point, prompts, float(grid.mean[row, column]), speed, low <= speed <= high))
    return found


def regrets(runs: Runs, prompts: str = "unseen") -> dict[str, list[float]]:
    """Return, per setting, what it loses against the best fixed setting at each concurrency; a gain is negative."""
    speeds = {
        name: {load["concurrency"]: throughput(load) for load in mixed(run, prompts)} for name, run in runs.items()
    }
    best = {at: max(speed[at] for name, speed in speeds.items() if name != TABLE) for at in REQUESTS}
    return {name: [1.0 - speed[at] / best[at] for at in REQUESTS] for name, speed in speeds.items()}


def mean_throughput(runs: Runs, prompts: str = "unseen") -> dict[str, float]:
    """Return the geometric mean over concurrencies of each setting."""
    return {
        name: float(np.exp(np.mean([np.log(throughput(load)) for load in mixed(run, prompts)])))
        for name, run in runs.items()
    }
