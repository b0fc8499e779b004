"""Raw results of the engine: sweeps, the table tuned on a part of them, predicted and measured
values, and regret.

An engine on one thread is busy all the time that it serves. Throughput is therefore tokens per
processor second, which equals that on the clock if nothing else runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
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
from testbed.studies.resampling import Interval, interval

FORMAT = "specopt-engine/1"
LENGTHS = {"ngram": (0, 1, 2, 3, 5), "draft-model": (1, 3)}
"""Draft lengths of each drafter. The draft model is too costly here for longer drafts to be
useful.
"""
TABLE = "table"

SEEN_LENGTHS, SEEN_CONCURRENCIES = (None, 1, 3, 5), (1, 4, 16)
"""The part that tuning uses. It predicts the rest."""

Runs = Mapping[str, Mapping[str, Any]]
"""Raw results by setting: "none", a draft length, or `TABLE`."""


def read_runs(folder: Path, drafter: str) -> dict[str, dict[str, Any]]:
    """Return the existing results of a drafter's settings, and those without speculation, for all
    repetitions.

    Raises
    ------
    InvalidInput
        If a file contains something else.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in ("none", *map(str, LENGTHS[drafter]), TABLE):
        for path in sorted(
            folder.glob("*/none.json" if name == "none" else f"*/{drafter}-{name}.json")
        ):
            data = read_json(path)
            if not isinstance(data, dict) or data.get("format") != FORMAT:
                raise InvalidInput(f"{path}: expected results of an engine, format {FORMAT}")
            before = found.get(name, {"loads": []})
            loads = [load | {"start": path.parent.name} for load in data["loads"]]
            found[name] = data | {"loads": before["loads"] + loads}
    return found


def throughput(load: Mapping[str, Any]) -> float:
    """Return tokens per processor second of a load."""
    return float(load["tokens"] / load["processor_seconds"])


def acceptance_length(load: Mapping[str, Any]) -> float | None:
    """Return the mean tokens of a step in which a sequence had drafts, or None if nothing was
    drafted.
    """
    counters = load["counters"]
    return (
        1.0 + counters["accepted_tokens"] / counters["drafts"] if counters.get("drafts") else None
    )


def mixed(run: Mapping[str, Any], prompts: str, workload: str = MIXED) -> list[Mapping[str, Any]]:
    """Return the loads of a run on a set of prompts, for all kinds of task or for one."""
    return [
        load for load in run["loads"] if load["workload"] == workload and load["prompts"] == prompts
    ]


def speeds(run: Mapping[str, Any], prompts: str) -> dict[int, float]:
    """Return the throughput of the mixed loads of a run by concurrency, as the geometric mean of
    repetitions.
    """
    loads = mixed(run, prompts)
    return {at: mean_speed(load for load in loads if load["concurrency"] == at) for at in REQUESTS}


def mean_speed(loads: Iterable[Mapping[str, Any]]) -> float:
    """Return the geometric mean of the throughput of the loads."""
    return float(np.exp(np.mean([np.log(throughput(load)) for load in loads])))


def gain(run: Mapping[str, Any], base: Mapping[str, Any]) -> Interval:
    """Return the gain of a run over another, as the geometric mean over both sets of prompts, with
    a bootstrap over loads.
    """
    logs, loads = [], []
    for prompts in ("tuning", "unseen"):
        for one, other in zip(mixed(run, prompts), mixed(base, prompts), strict=True):
            logs.append(np.log(throughput(one) / throughput(other)))
            loads.append(f"{prompts} {one['concurrency']}")
    found = interval(logs, loads)
    return Interval(*np.expm1([found.value, found.low, found.high]).tolist())


def gains_of_starts(run: Mapping[str, Any], base: Mapping[str, Any]) -> list[float]:
    """Return the gain for every pair of starts of two engines, because the loads of a start vary
    together.
    """
    parts = [
        [
            {"loads": [load for load in of["loads"] if load["start"] == start]}
            for start in _starts(of)
        ]
        for of in (run, base)
    ]
    return [gain(one, other).value for one, other in itertools.product(*parts)]


def _starts(run: Mapping[str, Any]) -> list[str]:
    return sorted({load["start"] for load in run["loads"]})


def spread(runs: Runs) -> float:
    """Return the standard deviation of log throughput between repetitions of a load, or NaN if
    there are none.
    """
    squares, degrees = 0.0, 0
    for run in runs.values():
        groups: dict[tuple[str, str, int], list[float]] = {}
        for load in run["loads"]:
            key = load["prompts"], load["workload"], load["concurrency"]
            groups.setdefault(key, []).append(np.log(throughput(load)))
        squares += sum(float(np.var(logs)) * len(logs) for logs in groups.values())
        degrees += sum(len(logs) - 1 for logs in groups.values())
    return math.sqrt(squares / degrees) if degrees else math.nan


def sweep_of(runs: Runs, prompts: str) -> Sweep:
    """Return the mixed loads of fixed settings as a sweep."""
    return Sweep(
        tuple(
            Measurement(
                Point(Condition(load["concurrency"]), None if name == "none" else int(name)),
                throughput(load),
            )
            for name, run in runs.items()
            if name != TABLE
            for load in mixed(run, prompts)
        )
    )


def seen(sweep: Sweep) -> Sweep:
    """Return the part of a sweep that tuning uses."""
    return Sweep(
        tuple(
            one
            for one in sweep.measurements
            if one.point.draft_length in SEEN_LENGTHS
            and one.point.condition.concurrency in SEEN_CONCURRENCIES
        )
    )


def tuned(runs: Runs) -> Tuning:
    """Return the result of tuning on its part of the tuning prompts."""
    return Tuner.from_sweep(
        seen(sweep_of(runs, "tuning")), Goal(concurrencies=tuple(REQUESTS))
    ).result()


@dataclass(frozen=True)
class Predicted:
    """A point that tuning did not use, with predicted and measured throughput, and whether it is
    within the limits.
    """

    point: Point
    prompts: str
    predicted: float
    measured: float
    held: bool

    @property
    def error(self) -> float:
        """Prediction divided by measurement, minus 1."""
        return self.predicted / self.measured - 1.0


def predictions(runs: Runs) -> list[Predicted]:
    """Return the points that tuning did not use, for either set of prompts. For unseen prompts
    these are all points.
    """
    grid = tuned(runs).grid
    found = []
    for prompts in ("tuning", "unseen"):
        sweep = sweep_of(runs, prompts)
        known = {one.point for one in seen(sweep).measurements} if prompts == "tuning" else set()
        for name, run in runs.items():
            for at, speed in speeds(run, prompts).items() if name != TABLE else ():
                point = Point(Condition(at), None if name == "none" else int(name))
                if point in known:
                    continue
                row, column = grid.row(at), column_of(point.draft_length)
                low, high = float(grid.low[row, column]), float(grid.high[row, column])
                found.append(
                    Predicted(
                        point, prompts, float(grid.mean[row, column]), speed, low <= speed <= high
                    )
                )
    return found


def regrets(runs: Runs, prompts: str = "unseen") -> dict[str, list[float]]:
    """Return the loss of each setting relative to the best fixed setting at each concurrency. A
    gain is negative.
    """
    found = {name: speeds(run, prompts) for name, run in runs.items()}
    best = {at: max(speed[at] for name, speed in found.items() if name != TABLE) for at in REQUESTS}
    return {name: [1.0 - speed[at] / best[at] for at in REQUESTS] for name, speed in found.items()}


def mean_throughput(runs: Runs, prompts: str = "unseen") -> dict[str, float]:
    """Return the geometric mean over concurrencies for each setting."""
    return {name: mean_speed(mixed(run, prompts)) for name, run in runs.items()}
