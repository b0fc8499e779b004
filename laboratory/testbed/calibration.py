"""Inputs of predictions from the laboratory: runtimes of its processes, and acceptance on prompts
that are not played.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from specopt.instances.runtimes.fit import RuntimeFit, fit_runtime
from specopt.instances.runtimes.table import RuntimeTable, TableColumns
from specopt.instances.runtimes.work import work_of
from specopt.measuring.measure import Settings, measure_with
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats
from specopt.models.pass_time import PassTable, VerificationTime
from specopt.models.pass_time.measured import AXES, MeasuredPasses
from testbed.processes import ProcessTimer, Worker

Passes = Mapping[str, Sequence[Any]]
"""Measured passes as columns."""

COLUMNS = (
    "phase",
    "batch",
    "new_tokens",
    "cached_tokens",
    "flops_per_task",
    "batch_new_tokens",
    "batch_interactions",
    "batch_cached_tokens",
    "seconds_median",
    "seconds_p10",
    "seconds_p90",
)


def measure_passes(worker: Worker, settings: Sequence[Settings]) -> dict[str, list[Any]]:
    """Time the model of a process. The rows of all settings are joined as columns."""
    timer = ProcessTimer(worker)
    rows = [row for one in settings for row in measure_with(timer, [worker.config], one).rows]
    return {name: [row[name] for row in rows] for name in COLUMNS}


def fit_passes(passes: Passes, phases: Sequence[str]) -> RuntimeFit:
    """Fit a runtime to the operations of the passes of some phases, by relative errors.

    The phases are those that the plan will run. A pass of one token uses another code path of the
    processor than a pass of two, and a function of operations cannot distinguish them.

    Raises
    ------
    InvalidInput
        If there are no such passes.
    """
    taken = [row for row, phase in enumerate(passes["phase"]) if phase in phases]
    if not taken:
        raise InvalidInput(f"passes: expected some of {', '.join(phases)}, got none")
    table = _table(
        passes, taken, TableColumns(x=("flops_per_task",), y=("seconds_median",), batch="batch")
    )
    return fit_runtime(table, work_of(table, "flops"), "roofline", errors="relative")


def tabled(*passes: Passes) -> PassTable:
    """Return the table of a complete grid of passes, made monotone, so that no pass takes less time
    than a smaller one.
    """
    columns = {name: np.concatenate([one[name] for one in passes]) for name in AXES}
    seconds = np.concatenate([one["seconds_median"] for one in passes])
    grid = MeasuredPasses.from_table(PassTable(**columns, seconds=seconds), "passes")
    batch, new, cached = (columns[name] for name in AXES)
    return PassTable(**columns, seconds=grid.seconds(batch, new, cached))


def fit_estimator(passes: Passes) -> VerificationTime:
    """Fit the additive form of paper 2 to all passes, by relative errors."""
    features = ("batch_new_tokens", "batch_interactions", "batch_cached_tokens")
    everything = list(range(len(passes["phase"])))
    table = _table(passes, everything, TableColumns(x=features, y=("seconds_median",)))
    return fit_runtime(table, work_of(table), "additive", errors="relative").estimator


def _table(passes: Passes, rows: list[int], columns: TableColumns) -> RuntimeTable:
    def numbers(*names: str) -> Floats:
        return np.array([[passes[name][row] for name in names] for row in rows], dtype=np.float64)

    return RuntimeTable(
        columns=columns,
        x=numbers(*columns.x),
        cached=np.zeros(len(rows)),
        batch=np.ones(len(rows)) if columns.batch is None else numbers(columns.batch)[:, 0],
        seconds=numbers(*columns.y)[:, 0],
        lines=np.array(rows),
        source="measured passes",
        rows=(len(passes["phase"]), len(rows)),
        warnings=(),
    )


def acceptance_rate(accepted: Sequence[Sequence[int]], length: int | Sequence[int]) -> float:
    """Return the share of accepted drafts among the verified ones, up to the first rejection of
    each round.

    Parameters
    ----------
    accepted
        Numbers of accepted drafts of each round, in lists.
    length
        Number of drafts of a round, either of all rounds or of the rounds of each list.

    Examples
    --------
    >>> acceptance_rate([[0, 3], [1]], 3)
    0.6666666666666666
    """
    counts = np.concatenate([np.asarray(rounds, dtype=np.int64) for rounds in accepted])
    drafted = np.repeat(
        np.broadcast_to(length, len(accepted)), [len(rounds) for rounds in accepted]
    )
    return float(counts.sum() / np.minimum(counts + 1, drafted).sum())
