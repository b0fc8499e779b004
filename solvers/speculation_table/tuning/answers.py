"""The candidate configurations of an engine, among which tuning chooses.

A configuration is no speculation, a constant draft length, or a table of draft lengths by batch
size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats
from specopt.solvers.speculation_table.ranges import fewest_ranges
from specopt.solvers.speculation_table.schedule import Range, Schedule
from specopt.solvers.speculation_table.tuning.goal import Goal
from specopt.solvers.speculation_table.tuning.grid import Case, Grid
from specopt.solvers.speculation_table.tuning.predictions import Predictor

Ranges = tuple[Range, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """All candidate configurations of an engine, with the predictions on which the choice is based.

    Parameters
    ----------
    predictor
        Predictor of the throughput.
    cases
        Workloads and contexts to serve, with their shares of the tokens.
    goal
        Goal of the choice.
    concurrencies
        Loads on which the choice is based.
    grid
        Predicted throughput of all options by batch size.
    value
        Speed-up by batch size and number of drafts 0, 1, ..., or the lower limit of this speed-up
        if the goal is robust. An entry is 0 if the draft length must not be used.
    kept
        Minimum, typical and maximum fraction of the throughput that is retained despite the cost of
        a table. There is one entry for each batch size in the grid.
    """

    predictor: Predictor
    cases: Sequence[Case]
    goal: Goal
    concurrencies: tuple[int, ...]
    grid: Grid
    value: Floats
    kept: Floats

    @property
    def relative(self) -> bool:
        """Whether speed-ups are relative to the best constant length instead of no speculation."""
        return self.predictor.sweep.relative is not None

    def remaining(self, ranges: Ranges) -> Floats:
        """Return the minimum, typical and maximum share of throughput that a configuration retains.

        For a table, the result is `kept`. All other configurations have no cost, so the shares are
        1.
        """
        return self.kept if len(ranges) > 1 else np.ones_like(self.kept)

    def all(self) -> list[Ranges]:
        """Return the ranges of batch sizes in every candidate configuration.

        The configurations are no speculation, constant lengths, and the table.

        Ranges with drafts end before the first load at which drafts do not fit in memory. If the
        goal is robust, they also end before the first load at which drafts may be slower than no
        speculation.
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
        value = self._between_measured() * self.kept[1 - self.goal.robust][:, None]
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
        """Return the speed-ups from which a table is built, by batch size and number of drafts.

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

    def scheduled(self, ranges: Ranges, *, judged: bool = False) -> Schedule:
        """Return the schedule of a configuration, with the predicted speed-ups.

        The speed-ups include the cost of a table and the time that requests wait. If `judged` is
        True, they are the values by which configurations are compared.
        """
        grid, cap = self.grid, ranges[-1][1]
        worth = (
            np.where(self.value > 0.0, self.value, np.nan)
            if judged
            else grid.mean[:, 1:] / grid.mean[:, :1]
        )
        worth = worth * self.remaining(ranges)[1 - (judged and self.goal.robust)][:, None]
        # Lengths that were not measured are no candidates, unless they are part of the ranges.
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
        """Return the geometric mean speed-up, by which configurations are compared."""
        return self.scheduled(ranges, judged=True).mean_speedup() or 0.0
