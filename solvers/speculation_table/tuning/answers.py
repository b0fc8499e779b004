"""The answers, that is, the engine configurations to choose from: no speculation, each constant
draft length, and a table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats
from specopt.solvers.speculation_table.ranges import fewest_ranges
from specopt.solvers.speculation_table.schedule import Range, Schedule
from specopt.solvers.speculation_table.tuning.capacity import Capacity, Latency
from specopt.solvers.speculation_table.tuning.goal import Goal
from specopt.solvers.speculation_table.tuning.grid import Grid, column_of, name_of

Ranges = tuple[Range, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """The possible configurations of an engine: no speculation, a constant length, or a table."""

    grid: Grid
    goal: Goal
    concurrencies: tuple[int, ...]
    # Speed-up by batch size with 0, 1, ... drafts, at its lower limit if `robust`; 0 if the length
    # must not be used.
    value: Floats
    kept: tuple[Floats, Floats, Floats]
    relative: bool

    def all(self) -> list[Ranges]:
        """Return the ranges of every answer: no speculation, constant lengths, and the table.

        Ranges with drafts end before the first load at which the drafts are not safe (with
        `robust`) or do not fit in memory.
        """
        sizes, room = self.grid.sizes, self.goal.room
        fitting = sum(room is None or size <= room[1] for size in sizes)
        found: list[Ranges] = [] if self.relative else [((1, sizes[-1], None),)]
        holds = np.cumprod(self.value[:fitting] > 0.0, axis=0).sum(axis=0)
        known = range(1, self.value.shape[1])
        least = 1 if self.goal.robust else max(1, fitting)
        found += [((1, sizes[holds[k] - 1], k),) for k in known if holds[k] >= least]
        if self.goal.single:
            return found
        left = self.kept[0] if self.goal.robust else self.kept[1]
        value = self._between_measured() * left[:, None]
        if self.goal.robust:
            value[value < 1.0] = 0.0
        value[:, : self.goal.prices.shortest] = 0.0
        holding = int(np.cumprod(value[:fitting].max(axis=1) > 0.0).sum())
        if holding:
            rows = fewest_ranges(np.maximum(value[:holding], 1e-300), self.goal.loss)
            table = tuple(
                (
                    sizes[low - 1] if low > 1 else 1,
                    sizes[high] - 1 if high < holding else sizes[high - 1],
                    k,
                )
                for low, high, k in rows
            )
            if len(table) > 1:
                found.append(table)
        return found

    def _between_measured(self) -> Floats:
        """Return the values from which a table is built.

        Between two measured loads, only the best length at the nearer measured load is allowed.
        """
        grid, value = self.grid, self.value.copy()
        seen = np.flatnonzero(grid.measured[:, 1:].any(axis=1))
        best, at = value.argmax(axis=1), np.log(grid.sizes)
        for row in np.setdiff1d(np.arange(len(at)), seen):
            around = [*seen[seen < row][-1:], *seen[seen > row][:1]]
            if len(around) == 2:
                usual = best[min(around, key=lambda k: round(abs(at[k] - at[row]), 9))]
                value[row, np.arange(value.shape[1]) != usual] = 0.0
        return value

    def schedule(self, ranges: Ranges, *, judged: bool = False) -> Schedule:
        """Return the schedule for some ranges, with speed-ups that include costs and waiting.

        If `judged` is True, the speed-ups are the values by which answers are compared.
        """
        grid, cap = self.grid, ranges[-1][1]
        worth = (
            np.where(self.value > 0.0, self.value, np.nan)
            if judged
            else grid.mean[:, 1:] / grid.mean[:, :1]
        )
        if len(ranges) > 1:
            worth = worth * (self.kept[0] if judged and self.goal.robust else self.kept[1])[:, None]
        # Lengths that were not measured are not answers, unless they are part of the ranges.
        taken = np.isin(np.arange(worth.shape[1]), [k for *_, k in ranges if k is not None])
        known = grid.measured[:, 1:].any(axis=0) | taken
        worth = np.where(known, worth, np.nan)
        at = [grid.row(min(c, cap)) for c in self.concurrencies]
        none = grid.mean[:, 0]
        waiting = none[at] / none[[grid.row(c) for c in self.concurrencies]]
        return Schedule(
            ranges=ranges,
            batches=self.concurrencies,
            speedups=worth[at] * waiting[:, None],
            weights=self.goal.shares(self.concurrencies),
        )

    def score(self, ranges: Ranges) -> float:
        """Return the geometric mean speed-up by which answers are compared."""
        return self.schedule(ranges, judged=True).mean_speedup() or 0.0

    def capacity(self, ranges: Ranges, times: Latency) -> Capacity:
        """Return the number of requests that an answer serves within the target and the memory."""
        grid, schedule, name = self.grid, Schedule(ranges=ranges), name_of(ranges)
        sizes, rows = np.array(grid.sizes), np.arange(len(grid.sizes))
        columns = np.array([column_of(schedule.at(size)) for size in grid.sizes])
        able = (sizes <= ranges[-1][1]) & ~times.late[rows, columns]
        longest = (self.goal.tpot_seconds or np.inf) * (1 + 1e-12)
        base = sizes * times.share[rows, columns]
        speeds = np.stack([of[rows, columns] for of in (grid.low, grid.mean, grid.high)])
        if len(ranges) > 1:
            speeds *= self.kept
        counts = np.cumprod(able & (base / speeds <= longest), axis=1).sum(axis=1).tolist()
        low, most, high = (grid.sizes[count - 1] if count else 0 for count in counts)
        full = self.goal.room is not None and most >= self.goal.room[name != "none"]
        speed = float(speeds[1, counts[1] - 1]) if most else 0.0
        return Capacity(name, most, low, high, counts[1] == len(sizes) and not full, speed)
