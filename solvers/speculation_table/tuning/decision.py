"""Which draft length at which batch size: the best throughput or the longest draft in time, in few ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specopt.models.arguments import integer, number, positive
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, describe
from specopt.models.sweep import MAX_CONCURRENCY, MAX_DRAFTS, Condition, Point
from specopt.solvers.speculation_table.ranges import fewest_ranges
from specopt.solvers.speculation_table.schedule import Range, Schedule
from specopt.solvers.speculation_table.tuning.predictions import IDLE_COST, Predictor

_FURTHEST = 2  # times the longest measured draft: as far as is extrapolated
_SIZES = 256  # batch sizes up to which each is looked at; beyond, this many and the measured ones


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What is wanted of a table.

    Parameters
    ----------
    max_batch, max_length
        Largest batch and longest draft; None: the largest measured.
    tpot_seconds
        Take the longest draft whose time per output token stays below; None: the best throughput.
    loss
        Share of throughput that a batch size may lose for fewer ranges.
    robust
        Take what is best at the lower end of the bands, and nothing that may be slower than no speculation.
    weights
        How often each measured concurrency occurs; None: equally often.
    workload, context_tokens
        What is served; None: all that was measured, in equal shares of the tokens.
    extrapolate
        Look beyond the measured range, too.
    concurrencies
        What counts beside the measured ones, when regret is bounded.
    draft_lengths
        What may be taken beside 0; empty: all up to the longest measured.
    single
        One draft length for every batch size, as some engines take it.
    """

    max_batch: int | None = None
    max_length: int | None = None
    tpot_seconds: float | None = None
    loss: float = 0.01
    robust: bool = False
    weights: Mapping[int, float] | None = None
    workload: str | None = None
    context_tokens: int | None = None
    extrapolate: bool = False
    concurrencies: tuple[int, ...] = ()
    draft_lengths: tuple[int, ...] = ()
    single: bool = False

    def __post_init__(self) -> None:
        if self.max_batch is not None:
            integer("max_batch", self.max_batch, 1, MAX_CONCURRENCY)
        if self.max_length is not None:
            integer("max_length", self.max_length, 1, MAX_DRAFTS)
        if self.tpot_seconds is not None:
            positive("tpot", self.tpot_seconds)
        number("loss", self.loss, 0, below=1)
        for concurrency, weight in (self.weights or {}).items():
            number(f"weights[{concurrency}]", weight, 0)


def column_of(draft_length: int | None) -> int:
    """Return the column of an option in a grid: 0 without speculation, then 0, 1, ... draft tokens."""
    return 0 if draft_length is None else draft_length + 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """Throughput by batch size (rows) and option (columns: none, 0, 1, ... drafts).

    Parameters
    ----------
    sizes
        Batch sizes, increasing.
    mean, low, high
        Tokens per second; NaN where an option is out of the question.
    least, most
        Limits of the speed-up against no speculation; closer than those of the throughputs, which err together.
    measured
        Whether every part of it was measured.
    slower
        Whether some measurement was below its neighbour without speculation.
    """

    sizes: tuple[int, ...]
    mean: Floats
    low: Floats
    high: Floats
    least: Floats
    most: Floats
    measured: NDArray[np.bool_]
    slower: NDArray[np.bool_]

    def row(self, size: int) -> int:
        """Return the row of a batch size."""
        return self.sizes.index(size)


def grid_of(predictor: Predictor, served: Sequence[Condition], sizes: tuple[int, ...], lengths: Sequence[int]) -> Grid:
    """Return the throughput of no speculation and of draft lengths; all cases have equal shares of the tokens."""
    cases = sorted({(condition.workload, condition.context_tokens) for condition in served})
    shape = len(sizes), lengths[-1] + 2
    inverse, below, above, apart = np.zeros((4, *shape))
    measured, slower = np.ones(shape, dtype=bool), np.zeros(shape, dtype=bool)
    idle = 0 in predictor.sweep.draft_lengths
    options = [None, *(length for length in lengths if length or idle)]
    taken = [0 if option is None else option + 1 for option in options]
    for workload, context in cases:
        points = [Point(Condition(size, workload, context), option) for size in sizes for option in options]
        found = predictor.predict(points)
        every = len(sizes), len(options)
        speed, low, high = (getattr(found, name).reshape(every) for name in ("mean", "low", "high"))
        seen = found.measured.reshape(every)
        inverse[:, taken] += 1.0 / speed
        # limits of a mean of several: deviations add up, as if all erred alike, which holds whatever they do
        below[:, taken] += np.log(speed / low) / speed
        above[:, taken] += np.log(high / speed) / speed
        apart[:, taken] += predictor.speedup_reach(found).reshape(every) / speed
        measured[:, taken] &= seen
        slower[:, taken] |= seen & seen[:, :1] & (speed < speed[:, :1])
    absent = np.setdiff1d(np.arange(shape[1]), taken)
    inverse[:, absent] = np.nan
    measured[:, absent] = False
    mean = len(cases) / inverse
    if len(cases) == 1:
        mean[:, taken] = speed  # to the last digit
    low, high = mean * np.exp(-below / inverse), mean * np.exp(above / inverse)
    speedup, reach = mean / mean[:, :1], np.exp(apart / inverse)
    least, most = speedup / reach, speedup * reach
    if not idle:
        cost = (0.0, 0.0, 0.0) if predictor.sweep.zero_is_none else IDLE_COST
        for array, share in ((low, cost[2]), (mean, cost[1]), (high, cost[0])):
            array[:, 1] = (1.0 - share) * array[:, 0]
        least[:, 1], most[:, 1] = 1.0 - cost[2], 1.0 - cost[0]
        measured[:, 1] = measured[:, 0] & predictor.sweep.zero_is_none
    least[:, 0] = most[:, 0] = 1.0
    return Grid(sizes=sizes, mean=mean, low=low, high=high, least=least, most=most, measured=measured, slower=slower)


@dataclass(frozen=True, kw_only=True, eq=False)
class Tuning:
    """A schedule, and what it rests on.

    Parameters
    ----------
    schedule
        Drafts per batch size.
    grid
        Throughput of all options.
    concurrencies
        The measured ones that count.
    notes
        What a reader should know.
    """

    schedule: Schedule
    grid: Grid
    concurrencies: tuple[int, ...]
    notes: tuple[str, ...]

    @property
    def regret_bound(self) -> float:
        """Largest share of throughput that may be lost at one of the concurrencies, bands at their worse ends."""
        return max(self.regret(c)[0] for c in self.concurrencies)

    def option(self, concurrency: int) -> int:
        """Return the column taken at a concurrency."""
        return column_of(self.schedule.at(concurrency))

    def is_option(self, column: int) -> bool:
        """Return whether an option was in question at all."""
        return not bool(np.isnan(self.grid.mean[:, column]).all())

    def regret(self, concurrency: int) -> tuple[float, int]:
        """Return the largest share that may be lost at a concurrency, and the column that it would be lost to."""
        row, taken = self.grid.row(concurrency), self.option(concurrency)
        others = self.grid.high[row].copy()
        others[taken] = np.nan
        if np.isnan(others).all():
            return 0.0, taken
        other = int(np.nanargmax(others))
        return max(0.0, 1.0 - float(self.grid.low[row, taken] / others[other])), other

    def worth(self, drafted: Range) -> tuple[float, float, float]:
        """Return the mean speed-up of a range against no speculation over its batch sizes, and its limits."""
        low, high, _ = drafted
        inside = [k for k, size in enumerate(self.grid.sizes) if low <= size <= high] or [0]
        taken, grid = self.option(low), self.grid
        speedup = grid.mean[inside, taken] / grid.mean[inside, 0]
        mean, least, most = (
            float(np.exp(np.log(values).mean()))
            for values in (speedup, grid.least[inside, taken], grid.most[inside, taken])
        )
        return mean, least, most

    def deciding(self, drafted: Range) -> list[tuple[int, int]]:
        """Return (concurrency, column) of the points that decide a range: what is taken and its closest rival."""
        low, high, _ = drafted
        inside = [c for c in self.concurrencies if low <= c <= high]
        if not inside:
            return []
        closest = max(inside, key=lambda c: self.regret(c)[0])
        return [(closest, self.option(closest)), (closest, self.regret(closest)[1])]

    def to_dict(self) -> dict[str, Any]:
        """Return what `specopt tune` writes as JSON-like data, but for the engine's configuration."""
        grid = self.grid
        columns = [k for k in range(grid.mean.shape[1]) if self.is_option(k)]
        rows = [(c, grid.row(c)) for c in self.concurrencies]
        return {
            "ranges": [list(drafted) for drafted in self.schedule.ranges],
            "speculate": self.schedule.speculates,
            "speedup": self.schedule.mean_speedup(),
            "regret_bound": self.regret_bound,
            "details": [
                {
                    "range": list(drafted),
                    **dict(zip(("speedup", "low", "high"), self.worth(drafted), strict=True)),
                    "decided_by": [
                        {"concurrency": c, "draft_length": _length(column)} for c, column in self.deciding(drafted)
                    ],
                }
                for drafted in self.schedule.ranges
            ],
            "predictions": [
                {
                    "concurrency": c,
                    "draft_length": _length(k),
                    "tokens_per_second": float(grid.mean[row, k]),
                    "low": float(grid.low[row, k]),
                    "high": float(grid.high[row, k]),
                    "measured": bool(grid.measured[row, k]),
                }
                for c, row in rows
                for k in columns
            ],
            "notes": list(self.notes),
        }


def _length(column: int) -> int | str:
    return "none" if column == 0 else column - 1


def decide(predictor: Predictor, goal: Goal) -> Tuning:
    """Return the schedule that a goal asks for.

    Guarantee: with ``robust``, the speed-up of what is taken at a batch size has a lower limit of at least 1 there, and
    nothing was measured below no speculation. Else speculation is left out where its (weighted) geometric mean over
    the measured concurrencies does not exceed 1.

    Raises
    ------
    InvalidInput
        If nothing was measured without speculation, or the goal lies outside what was measured and extrapolation is not
        allowed, or names what was not measured.
    """
    if all(m.point.draft_length is not None or m.tokens_per_second is None for m in predictor.sweep.measurements):
        raise InvalidInput("sweep: expected a run without speculation (draft_length none): that is the comparison")
    served = _served(predictor, goal)
    measured = sorted({condition.concurrency for condition in served})
    largest = goal.max_batch or measured[-1]
    if largest > measured[-1] and not goal.extrapolate:
        raise InvalidInput(
            f"max_batch: expected at most {measured[-1]}, the largest measured concurrency, got {largest}; measure it, "
            "or extrapolate"
        )
    concurrencies = tuple(c for c in sorted({*measured, *goal.concurrencies}) if c <= largest)
    if not concurrencies:
        raise InvalidInput(f"max_batch: expected at least {measured[0]}, the smallest measured concurrency")
    notes = list(predictor.notes)
    known = [length for length in predictor.sweep.draft_lengths if length]
    lengths = _lengths(known, goal)
    if 0 not in predictor.sweep.draft_lengths and not predictor.sweep.zero_is_none:
        notes.append(
            f"draft length 0 in a speculating engine was not measured: it is taken to cost {IDLE_COST[0]:.0%} to "
            f"{IDLE_COST[2]:.0%}, usually {IDLE_COST[1]:.0%}"
        )
    first = 1 if goal.extrapolate else concurrencies[0]
    if first > 1:
        notes.append(f"batches below {first} take the choice at {first}: they were not measured")
    grid = grid_of(predictor, served, _sizes(first, largest, concurrencies), lengths)
    weights = _weights(goal, measured, concurrencies)
    speedups = np.array([grid.mean[grid.row(c), 1:] / grid.mean[grid.row(c), 0] for c in concurrencies])
    shortest = 1 if 0 in predictor.sweep.draft_lengths or predictor.sweep.zero_is_none else known[0]
    value, failing = _value(grid, goal, (shortest, known[-1]), (measured[0], measured[-1]))
    if goal.single:
        rows = [grid.row(c) for c in concurrencies]
        means = np.average(np.log(np.maximum(speedups * (value[rows] > 0.0), 1e-300)), axis=0, weights=weights)
        ranges = [(1, largest, int(np.argmax(np.where(np.isnan(means), -np.inf, means)[1:])) + 1)]
    else:
        ranges = _ranges(grid.sizes, value, largest, 0.0 if goal.tpot_seconds is not None else goal.loss)
    if failing is None and goal.robust and goal.single and not value[:, ranges[0][2]].all():
        failing = grid.sizes[int(np.argmin(value[:, ranges[0][2]]))]
    schedule = Schedule.if_faster(ranges, concurrencies, speedups, weights)
    if failing is not None:
        before = max((size for size in grid.sizes if size < failing), default=0)
        notes.append(
            f"from batch {failing} on every draft length may be slower than no speculation"
            + (f"; up to batch {before} drafts hold within the bands" if before else "")
        )
        schedule = Schedule(ranges=((1, largest, None),), batches=concurrencies, speedups=speedups, weights=weights)
    if schedule.longest == known[-1] and known[-1] == lengths[-1]:
        notes.append(f"the longest measured draft, {known[-1]}, is taken: a longer one may be better still")
    tuning = Tuning(schedule=schedule, grid=grid, concurrencies=concurrencies, notes=tuple(notes))
    return replace(tuning, notes=(*notes, *_late(tuning, goal.tpot_seconds)))


def _late(tuning: Tuning, target: float | None) -> list[str]:
    """Return a note on the measured loads at which the time per output token misses its target."""
    if target is None:
        return []
    seconds = {c: c / float(tuning.grid.mean[tuning.grid.row(c), tuning.option(c)]) for c in tuning.concurrencies}
    late = [f"{1000 * spent:.3g} ms at {c}" for c, spent in seconds.items() if spent > target]
    if not late:
        return []
    return [f"no draft length meets {1000 * target:g} ms per output token everywhere: {', '.join(late)}"]


def _served(predictor: Predictor, goal: Goal) -> list[Condition]:
    """Return the conditions that the goal asks for: measured ones, or with a context between measured ones."""
    conditions = list(predictor.sweep.conditions)
    if goal.workload is not None:
        known = predictor.sweep.workloads
        if goal.workload not in known:
            listed = ", ".join(describe(name) for name in known[:20])
            raise InvalidInput(f"workload: expected one that was measured ({listed}), got {describe(goal.workload)}")
        conditions = [condition for condition in conditions if condition.workload == goal.workload]
    if goal.context_tokens is not None:
        contexts = sorted({condition.context_tokens for condition in conditions})
        if not contexts[0] <= goal.context_tokens <= contexts[-1] and not (goal.extrapolate and contexts[0]):
            raise InvalidInput(
                f"context_tokens: expected {contexts[0]} to {contexts[-1]}, as was measured, got {goal.context_tokens}"
            )
        conditions = [replace(condition, context_tokens=goal.context_tokens) for condition in conditions]
    return conditions


def _lengths(known: Sequence[int], goal: Goal) -> tuple[int, ...]:
    """Return the draft lengths in question: 0, and all up to the longest measured."""
    if not known:
        raise InvalidInput("sweep: expected a run that drafts (draft_length >= 1), got none")
    most = _FURTHEST * known[-1] if goal.extrapolate else known[-1]
    longest = known[-1] if goal.max_length is None else goal.max_length
    if longest > most:
        way = "" if goal.extrapolate else ", or extrapolate"
        raise InvalidInput(
            f"max_length: expected at most {most} where the longest measured draft is {known[-1]}, got {longest}; "
            f"measure it{way}"
        )
    lengths = tuple(k for k in range(1, longest + 1) if not goal.draft_lengths or k in goal.draft_lengths)
    if not lengths:
        raise InvalidInput(f"max_length: expected at least {min(goal.draft_lengths)}, got {longest}")
    return (0, *lengths)


def _sizes(first: int, largest: int, concurrencies: Sequence[int]) -> tuple[int, ...]:
    spread = np.unique(np.geomspace(first, largest, _SIZES).round().astype(int))
    sizes = range(first, largest + 1) if largest - first < _SIZES else spread.tolist()
    return tuple(sorted({*sizes, *concurrencies}))


def _value(grid: Grid, goal: Goal, lengths: tuple[int, int], loads: tuple[int, int]) -> tuple[Floats, int | None]:
    """Return what 0, 1, ... drafts are worth by batch size, and the first size at which none may be taken.

    What lies outside the measured draft lengths and loads is not taken, or, if extrapolation is allowed, counts by the
    lower end of its band.
    """
    column, size = np.arange(grid.mean.shape[1] - 1), np.array(grid.sizes)[:, None]
    outside = ((column > 0) & (column < lengths[0])) | (column > lengths[1]) | (size < loads[0]) | (size > loads[1])
    judged = np.where(outside | goal.robust, grid.low[:, 1:], grid.mean[:, 1:])
    value = np.where(np.isnan(judged) | (outside & (not goal.extrapolate)), 0.0, judged)
    if goal.tpot_seconds is not None:
        seconds = size / np.where(value > 0.0, value, np.nan)
        meets = seconds <= goal.tpot_seconds
        # what meets the target counts by its length; where nothing does, the fastest is taken
        value = np.where(meets.any(axis=1, keepdims=True), meets * (1.0 + column), value)
    failing = None
    if goal.robust:
        held = (value > 0.0) & (grid.least[:, 1:] >= 1.0) & (grid.low[:, 1:] >= grid.low[:, :1])
        held &= ~grid.slower[:, 1:]
        some = np.any(held, axis=1, keepdims=True)
        failing = None if some.all() else grid.sizes[int(np.argmin(some))]
        value = np.where(held | ~some, value, 0.0)
    return value / value.max(axis=1, keepdims=True), failing


def _ranges(sizes: Sequence[int], value: Floats, largest: int, loss: float) -> list[tuple[int, int, int]]:
    rows = fewest_ranges(np.maximum(value, 1e-300), loss)
    starts = [1, *(sizes[low - 1] for low, _, _ in rows[1:]), largest + 1]
    return [(low, after - 1, drafts) for (low, after), (*_, drafts) in zip(pairwise(starts), rows, strict=True)]


def _weights(goal: Goal, measured: Sequence[int], concurrencies: Sequence[int]) -> Floats | None:
    if goal.weights is None:
        return None
    unknown = sorted(set(goal.weights) - set(measured))
    if unknown:
        listed = ", ".join(map(str, measured[:20]))
        raise InvalidInput(f"weights: expected measured concurrencies ({listed}), got {unknown[0]}")
    weights = np.array([float(goal.weights.get(c, 0.0)) for c in concurrencies])
    if not weights.sum() > 0.0:
        raise InvalidInput("weights: expected a positive weight up to the largest batch, got none")
    return weights
