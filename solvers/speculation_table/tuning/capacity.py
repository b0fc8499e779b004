"""Capacity of an option, which is the number of concurrent requests that it can serve.

The requests must fit in memory and meet the latency target. If the sweep contains a run's time per
output token, that value is used. Otherwise, the time per output token is the ratio of concurrency
to throughput, minus the wait for the first token. If the wait is unknown, the ratio is an upper
bound on the mean time per output token. Between measured loads, the quotient of the time per output
token and the ratio is interpolated. The limits of a capacity follow from the bands of the
throughput.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Truths
from specopt.models.sweep import TPOT, Condition, Measurement, Point
from specopt.solvers.speculation_table.schedule import Schedule
from specopt.solvers.speculation_table.tuning.answers import Answers, Ranges
from specopt.solvers.speculation_table.tuning.grid import column_of, length_of, name_of

_BUSY = 0.8  # minimum share of requests in service; below it, requests are queueing


@dataclass(frozen=True)
class Capacity:
    """The largest number of concurrent requests at which an option meets the latency target.

    `low` and `high` are lower and upper limits for this number, and `tokens_per_second` is the
    throughput at this number of requests. If `at_least` is true, the capacity may exceed the
    largest load that was considered.
    """

    draft_length: int | str
    concurrency: int
    low: int
    high: int
    at_least: bool
    tokens_per_second: float


def capacities(answers: Answers, every: Sequence[Ranges]) -> tuple[list[Capacity], list[str]]:
    """Return the capacity of every candidate configuration, and notes on the capacities.

    Raises
    ------
    InvalidInput
        If the sweep lacks a required value for some option. This is the percentile of the time per
        output token or, if the time to first token is limited, the time to first token.
    """
    columns = sorted({column_of(k) for ranges in every for *_, k in ranges})
    share, late, notes = _latency(answers, columns)
    grid, room = answers.grid, answers.goal.room
    sizes, rows = np.array(grid.sizes), np.arange(len(grid.sizes))
    longest = (answers.goal.tpot_seconds or np.inf) * (1 + 1e-12)
    if room is not None:
        for column in columns:
            late[:, column] |= sizes > room[column > 0]
    found = []
    for ranges in every:
        schedule, name = Schedule(ranges=ranges), name_of(ranges)
        taken = rows, np.array([column_of(schedule.at(size)) for size in grid.sizes])
        able = (sizes <= ranges[-1][1]) & ~late[taken]
        speeds = np.stack([of[taken] for of in (grid.low, grid.mean, grid.high)])
        speeds *= answers.remaining(ranges)
        able = able & (sizes * share[taken] / speeds <= longest)
        counts = np.cumprod(able, axis=1).sum(axis=1).tolist()
        low, most, high = (grid.sizes[count - 1] if count else 0 for count in counts)
        full = room is not None and most >= room[name != "none"]
        speed = float(speeds[1, counts[1] - 1]) if most else 0.0
        at_least = counts[1] == len(sizes) and not full
        found.append(Capacity(name, most, low, high, at_least, speed))
    return found, notes if answers.goal.tpot_seconds is not None else []


def _latency(answers: Answers, columns: Sequence[int]) -> tuple[Floats, Truths, list[str]]:
    """Return a tuple (share, late, notes) on the latency of the options.

    `share` contains the time per output token relative to the ratio of concurrency to throughput.
    `late` tells whether requests queue or wait too long for the first token. Both arrays are by
    batch size and option.
    """
    runs, cases, grid = answers.predictor.runs, answers.cases, answers.grid
    statistic, ttft_seconds = answers.goal.tpot_of, answers.goal.ttft_seconds
    share, late = np.ones_like(grid.mean), np.zeros(grid.mean.shape, bool)
    sizes, queueing, bounds = np.array(grid.sizes), [], []
    weights = np.array([case[2] for case in cases])
    for column in columns:
        own: dict[int, float] = {}
        waits: dict[int, float] = {}
        for load in sorted({point.condition.concurrency for point in runs}):
            option = column - 1 if column else None
            points = [Point(Condition(load, *case[:2]), option) for case in cases]
            if not all(point in runs for point in points):
                continue
            plain, mean, taken, wait = np.array(
                [_seconds(runs[point], statistic) for point in points]
            ).T
            where = f"draft_length {length_of(column)} at concurrency {load}"
            if statistic != "mean" and np.isnan(taken).any():
                raise InvalidInput(f"tpot: {TPOT[statistic]} is missing for {where}")
            if ttft_seconds is not None and np.isnan(wait).any():
                raise InvalidInput(f"ttft: mean_ttft_ms is missing for {where}")
            if weights @ mean < _BUSY * (weights @ plain):
                queueing.append(f"draft_length {length_of(column)} at {load} requests")
                late[sizes >= load, column] = True
                continue
            waits[load] = weights @ wait
            if np.isnan(taken).any():
                bounds.append(str(length_of(column)))
            else:
                usual = weights @ taken if statistic == "mean" else taken.max()
                own[load] = usual / (weights @ plain)
        if own:
            share[:, column] = np.interp(np.log(sizes), np.log(list(own)), list(own.values()))
        if ttft_seconds is not None and waits:
            usual = np.interp(np.log(sizes), np.log(list(waits)), list(waits.values()))
            late[:, column] |= usual > ttft_seconds
    notes = []
    if queueing:
        notes.append(
            f"requests queue (fewer than {_BUSY:.0%} run at a time) with {', '.join(queueing[:8])};"
            " these loads are not counted as capacity"
        )
    if bounds:
        names = ", ".join(dict.fromkeys(bounds))
        notes.append(
            f"for {names}, the mean time per token is bounded by concurrency / throughput, because"
            " mean_tpot_ms, or mean_ttft_ms and output_tokens, were not measured"
        )
    if ttft_seconds is not None:
        notes.append(
            "times to the first token are interpolated between measured loads, without confidence"
            " limits"
        )
    return share, late, notes


def _seconds(runs: Sequence[Measurement], statistic: str) -> tuple[float, float, float, float]:
    """Return four durations of one measured point in seconds, averaged over its runs.

    They are the ratio of concurrency to throughput, the mean time per output token, the requested
    statistic of the time per output token, and the wait for the first token.
    """

    def mean(name: str) -> float:
        return float(np.mean([one.also.get(name, np.nan) for one in runs]))

    speed = float(np.mean([one.tokens_per_second or np.nan for one in runs]))
    plain = runs[0].point.condition.concurrency / speed
    wait, usual = 1e-3 * mean("mean_ttft_ms"), 1e-3 * mean(TPOT["mean"])
    if np.isnan(usual):
        usual = plain - wait / mean("output_tokens")
    return plain, usual, usual if statistic == "mean" else 1e-3 * mean(TPOT[statistic]), wait
