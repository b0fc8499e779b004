"""Which draft length at which batch size: the best throughput or the longest draft in time, in few ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from specopt.models.arguments import integer, number, positive
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, describe
from specopt.models.sweep import MOST_CONCURRENCY, MOST_DRAFTS, Condition, Point
from specopt.solvers.speculation_table.ranges import fewest_ranges
from specopt.solvers.speculation_table.schedule import Range, Schedule
from specopt.solvers.speculation_table.tuning.predictions import Predictor

IDLE_COST = (0.0, 0.07, 0.22)
"""Share of throughput that an engine loses by speculating with 0 drafts: least, usual and most that was ever reported;
counts where draft length 0 was not measured."""

_SIZES = 256  # batch sizes up to which each is looked at; beyond, so many and the measured ones


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
        What may be taken beside 0; empty: all between the shortest and the longest measured.
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

    def __post_init__(self) -> None:
        if self.max_batch is not None:
            integer("max_batch", self.max_batch, 1, MOST_CONCURRENCY)
        if self.max_length is not None:
            integer("max_length", self.max_length, 1, MOST_DRAFTS)
        if self.tpot_seconds is not None:
            positive("tpot", self.tpot_seconds)
        number("loss", self.loss, 0, below=1)
        for concurrency, weight in (self.weights or {}).items():
            number(f"weights[{concurrency}]", weight, 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """Throughput of all options, served as the goal says: row per batch size, column none, 0, 1, ... drafts.

    Parameters
    ----------
    sizes
        Batch sizes, increasing.
    mean, low, high
        Tokens per second; NaN where an option is out of the question.
    measured
        Whether every part of it was measured.
    slower
        Whether some measurement was below its neighbour without speculation.
    """

    sizes: tuple[int, ...]
    mean: Floats
    low: Floats
    high: Floats
    measured: np.ndarray[Any, np.dtype[np.bool_]]
    slower: np.ndarray[Any, np.dtype[np.bool_]]

    def row(self, size: int) -> int:
        """Return the row of a batch size."""
        return self.sizes.index(size)


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
    regret_bound
        Largest share of throughput that the schedule may lose at one of them, bands taken at their worse ends.
    notes
        What a reader should know.
    """

    schedule: Schedule
    grid: Grid
    concurrencies: tuple[int, ...]
    regret_bound: float
    notes: tuple[str, ...]

    def option(self, concurrency: int) -> int:
        """Return the column taken at a concurrency."""
        drafts = self.schedule.at(concurrency)
        return 0 if drafts is None else drafts + 1

    def is_option(self, column: int) -> bool:
        """Tell whether an option was in question at all."""
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
        """Return the mean speed-up of a range against no speculation, and the limits of it, bands at their ends."""
        low, high, _ = drafted
        inside = [k for k, size in enumerate(self.grid.sizes) if low <= size <= high]
        counted = [k for k in inside if self.grid.sizes[k] in self.concurrencies] or inside
        taken = self.option(low)
        grid, none = self.grid, 0
        mean = grid.mean[counted, taken] / grid.mean[counted, none]
        if taken == none:
            return 1.0, 1.0, 1.0
        least = grid.low[counted, taken] / grid.high[counted, none]
        most = grid.high[counted, taken] / grid.low[counted, none]
        return tuple(float(np.exp(np.log(values).mean())) for values in (mean, least, most))  # type: ignore[return-value]

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

    Guarantee: with ``robust``, every draft length that is taken at a batch size has a lower limit of at least that of
    no speculation there, and none was measured below it. Else speculation is left out where its (weighted) geometric
    mean over the measured concurrencies does not exceed 1.

    Raises
    ------
    InvalidInput
        If the goal lies outside what was measured and extrapolation is not allowed, or names what was not measured.
    """
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
    lengths = _lengths(predictor, goal)
    if 0 not in predictor.sweep.draft_lengths:
        notes.append(
            f"draft length 0 in a speculating engine was not measured: it is taken to cost {IDLE_COST[0]:.0%} to "
            f"{IDLE_COST[2]:.0%}, usually {IDLE_COST[1]:.0%}"
        )
    first = 1 if goal.extrapolate else concurrencies[0]
    if first > 1:
        notes.append(f"batches below {first} take the choice at {first}: they were not measured")
    grid = _grid(predictor, served, _sizes(first, largest, concurrencies), lengths)
    value, failing = _value(grid, goal)
    ranges = _ranges(grid.sizes, value, largest, 0.0 if goal.tpot_seconds is not None else goal.loss)
    speedups = np.array([grid.mean[grid.row(c), 1:] / grid.mean[grid.row(c), 0] for c in concurrencies])
    weights = _weights(goal, concurrencies)
    schedule = Schedule.if_faster(ranges, concurrencies, speedups, weights)
    if failing is not None:
        before = max((size for size in grid.sizes if size < failing), default=0)
        notes.append(
            f"from batch {failing} on every draft length may be slower than no speculation"
            + (f"; up to batch {before} drafts hold within the bands" if before else "")
        )
        schedule = Schedule(ranges=((1, largest, None),), batches=concurrencies, speedups=speedups, weights=weights)
    tuning = Tuning(schedule=schedule, grid=grid, concurrencies=concurrencies, regret_bound=0.0, notes=tuple(notes))
    bound = max(tuning.regret(c)[0] for c in concurrencies)
    return Tuning(schedule=schedule, grid=grid, concurrencies=concurrencies, regret_bound=bound, notes=tuple(notes))


def _served(predictor: Predictor, goal: Goal) -> list[Condition]:
    """Return the measured conditions that the goal asks for."""
    conditions = list(predictor.sweep.conditions)
    for name in ("workload", "context_tokens"):
        wanted = getattr(goal, name)
        if wanted is not None:
            known = sorted({getattr(condition, name) for condition in conditions})
            if wanted not in known:
                listed = ", ".join(describe(value) for value in known[:20])
                raise InvalidInput(f"{name}: expected one that was measured ({listed}), got {describe(wanted)}")
            conditions = [condition for condition in conditions if getattr(condition, name) == wanted]
    return conditions


def _lengths(predictor: Predictor, goal: Goal) -> tuple[int, ...]:
    """Return the draft lengths in question: 0, and all between the shortest and the longest measured."""
    known = [length for length in predictor.sweep.draft_lengths if length]
    if not known:
        raise InvalidInput("sweep: expected a run that drafts (draft_length >= 1), got none")
    longest = goal.max_length or known[-1]
    if longest > known[-1] and not goal.extrapolate:
        raise InvalidInput(
            f"max_length: expected at most {known[-1]}, the longest measured draft, got {longest}; measure it, or "
            "extrapolate"
        )
    shortest = 1 if goal.extrapolate else known[0]
    if longest < shortest:
        raise InvalidInput(f"max_length: expected at least {shortest}, the shortest measured draft, got {longest}")
    return (0, *(k for k in range(shortest, longest + 1) if not goal.draft_lengths or k in goal.draft_lengths))


def _sizes(first: int, largest: int, concurrencies: Sequence[int]) -> tuple[int, ...]:
    spread = np.unique(np.geomspace(first, largest, _SIZES).round().astype(int))
    sizes = range(first, largest + 1) if largest - first < _SIZES else spread.tolist()
    return tuple(sorted({*sizes, *concurrencies}))


def _grid(predictor: Predictor, served: Sequence[Condition], sizes: tuple[int, ...], lengths: Sequence[int]) -> Grid:
    cases = sorted({(condition.workload, condition.context_tokens) for condition in served})
    columns = lengths[-1] + 2
    inverse, spread_low, spread_high = np.zeros((3, len(sizes), columns))
    measured, slower = np.ones((len(sizes), columns), dtype=bool), np.zeros((len(sizes), columns), dtype=bool)
    idle = 0 in predictor.sweep.draft_lengths
    options = [None, *(length for length in lengths if length or idle)]
    taken = [0 if option is None else option + 1 for option in options]
    for workload, context in cases:
        points = [Point(Condition(size, workload, context), option) for size in sizes for option in options]
        found = predictor.predict(points)
        shape = len(sizes), len(options)
        speed, low, high = (getattr(found, name).reshape(shape) for name in ("mean", "low", "high"))
        seen = found.measured.reshape(shape)
        inverse[:, taken] += 1.0 / speed
        # limits of a mean of several: deviations add up, as if all erred alike, which holds whatever they do
        spread_low[:, taken] += np.log(speed / low) / speed
        spread_high[:, taken] += np.log(high / speed) / speed
        measured[:, taken] &= seen
        slower[:, taken] |= seen & seen[:, :1] & (speed < speed[:, :1])
    absent = np.setdiff1d(np.arange(columns), taken)
    inverse[:, absent] = np.nan
    measured[:, absent] = False
    mean = len(cases) / inverse
    if len(cases) == 1:
        mean[:, taken] = speed  # to the last digit
    low, high = mean * np.exp(-spread_low / inverse), mean * np.exp(spread_high / inverse)
    if not idle:
        least, usual, most = IDLE_COST
        mean[:, 1], low[:, 1], high[:, 1] = (1 - usual) * mean[:, 0], (1 - most) * low[:, 0], (1 - least) * high[:, 0]
    return Grid(sizes=sizes, mean=mean, low=low, high=high, measured=measured, slower=slower)


def _value(grid: Grid, goal: Goal) -> tuple[Floats, int | None]:
    """Return what 0, 1, ... drafts are worth by batch size, and the first size at which none may be taken."""
    judged = (grid.low if goal.robust else grid.mean)[:, 1:]
    value = np.where(np.isnan(judged), 0.0, judged)
    if goal.tpot_seconds is not None:
        seconds = np.array(grid.sizes)[:, None] / np.where(value > 0.0, value, np.nan)
        meets = seconds <= goal.tpot_seconds
        # what meets the target counts by its length; where nothing does, the fastest is taken
        value = np.where(meets.any(axis=1, keepdims=True), meets * (1.0 + np.arange(value.shape[1])), value)
    failing = None
    if goal.robust:
        held = (grid.low[:, 1:] >= grid.low[:, :1]) & ~grid.slower[:, 1:]
        some = np.any(held, axis=1, keepdims=True)
        failing = None if some.all() else grid.sizes[int(np.argmin(some))]
        value = np.where(held | ~some, value, 0.0)
    return value / value.max(axis=1, keepdims=True), failing


def _ranges(sizes: Sequence[int], value: Floats, largest: int, loss: float) -> list[tuple[int, int, int]]:
    rows = fewest_ranges(np.maximum(value, 1e-300), loss)
    starts = [1, *(sizes[low - 1] for low, _, _ in rows[1:]), largest + 1]
    return [(low, after - 1, drafts) for (low, after), (*_, drafts) in zip(pairwise(starts), rows, strict=True)]


def _weights(goal: Goal, concurrencies: Sequence[int]) -> Floats | None:
    if goal.weights is None:
        return None
    weights = np.array([float(goal.weights.get(c, 0.0)) for c in concurrencies])
    if not weights.sum() > 0.0:
        raise InvalidInput("weights: expected a positive weight at a measured concurrency, got none")
    return weights
