"""The result of tuning: a chosen schedule and its speed-ups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from specopt.models.sweep import ONLY, Setup
from specopt.solvers.speculation_table.schedule import Range, Schedule
from specopt.solvers.speculation_table.tuning.answers import Answers
from specopt.solvers.speculation_table.tuning.capacity import Capacity
from specopt.solvers.speculation_table.tuning.grid import (
    column_of,
    geometric_mean,
    length_of,
    name_of,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Tuning(Answers):
    """A chosen schedule, together with the candidate configurations.

    In addition to the parameters of `Answers`, the class has the following parameters.

    Parameters
    ----------
    schedule
        Draft length for each batch size.
    notes
        Remarks on the choice, for users.
    setup
        Drafter and mode of the engine.
    gain
        Geometric mean of the speed-ups on which the choice is based, including costs. With
        `robust`, the lower limits of the speed-ups are averaged.
    capacity
        Capacity of every option, or an empty list if there is neither a latency target nor a memory
        limit.
    break_even
        Acceptance length above which a draft length pays off, for each load and draft length. If
        the current acceptance length is unknown, the entry is the ratio of the break-even value to
        the current value.
    """

    schedule: Schedule
    gain: float
    capacity: Sequence[Capacity]
    break_even: Sequence[dict[str, Any]]
    notes: tuple[str, ...] = ()
    setup: Setup = ONLY

    @property
    def regret_bound(self) -> float:
        """Upper bound on the share of throughput that is lost at any load, given the bands."""
        return max(self.regret(c)[0] for c in self.concurrencies)

    @property
    def cap(self) -> int | None:
        """Maximum batch size that the engine should run, or None for no limit.

        Requests beyond this limit have to wait.
        """
        largest = self.schedule.largest_batch
        return largest if largest < self.grid.sizes[-1] else None

    @property
    def name(self) -> int | str:
        """Name of the choice: a draft length, "table" or "none"."""
        return name_of(self.schedule.ranges)

    @property
    def carries(self) -> int:
        """Number of concurrent requests that the choice serves within the target and the memory.

        The value is 0 if there is neither a latency target nor a memory limit.
        """
        return next((one.concurrency for one in self.capacity if one.draft_length == self.name), 0)

    def row(self, concurrency: int) -> int:
        """Return the index of the grid row that applies at a load.

        Loads above the schedule's largest batch size use the row of that size.
        """
        return self.grid.row(min(concurrency, self.schedule.largest_batch))

    def option(self, concurrency: int) -> int:
        """Return the index of the column of the option that the schedule uses at a load."""
        return column_of(self.schedule.at(concurrency))

    def is_option(self, column: int) -> bool:
        """Return whether the option in a column was among the candidate configurations."""
        return not bool(np.isnan(self.grid.mean[:, column]).all()) and (
            column > 0 or not self.relative
        )

    def speedup(self, concurrency: int) -> float:
        """Return the throughput of the choice at a load, relative to no speculation.

        The throughput accounts for the cost of speculation and for waiting times.
        """
        row = self.row(concurrency)
        speed = self.grid.mean[row, self.option(concurrency)]
        speed *= self.remaining(self.schedule.ranges)[1, row]
        return float(speed / self.grid.mean[self.grid.row(concurrency), 0])

    @cached_property
    def rivals(self) -> list[int]:
        """Columns of the options that may be better than the choice on average over the loads."""
        rows, grid = [self.grid.row(c) for c in self.concurrencies], self.grid
        low = np.array([grid.low[self.row(c), self.option(c)] for c in self.concurrencies])
        weights = self.goal.shares(self.concurrencies)
        drafting = [k for k in range(1, grid.high.shape[1]) if self.is_option(k)]
        answers = [[0]] * self.is_option(0) + (
            [[k] for k in drafting] if self.goal.single else [drafting]
        )
        found = []
        for columns in answers:
            best = np.nanmax(grid.high[np.ix_(rows, columns)], axis=1)
            if np.average(np.log(best / low), weights=weights) > 0.0:
                found += columns
        return found

    def regret(self, concurrency: int) -> tuple[float, int]:
        """Return a tuple (share, column): the maximum possible loss of throughput at a load, and
        the column of the best rival.

        The loss is the share of throughput that the choice may lose relative to the rival. If there
        is no rival, the loss is 0, and the column is the column of the choice.
        """
        row, taken = self.grid.row(concurrency), self.option(concurrency)
        others = [k for k in self.rivals if k != taken and not np.isnan(self.grid.high[row, k])]
        if not others:
            return 0.0, taken
        other = max(others, key=lambda k: float(self.grid.high[row, k]))
        low = float(self.grid.low[self.row(concurrency), taken])
        return max(0.0, 1.0 - low / float(self.grid.high[row, other])), other

    def worth(self, drafted: Range) -> tuple[float, float, float]:
        """Return the mean speed-up over the batch sizes of a range, with lower and upper limits."""
        low, high, _ = drafted
        grid, (dear, usual, cheap) = self.grid, self.remaining(self.schedule.ranges)
        inside = [k for k, size in enumerate(grid.sizes) if low <= size <= high] or [0]
        taken = inside, self.option(low)
        return (
            geometric_mean((grid.mean[taken] / grid.mean[inside, 0]) * usual[inside]),
            geometric_mean(grid.least[taken] * dear[inside]),
            geometric_mean(grid.most[taken] * cheap[inside]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result of `specopt tune` as JSON-like data, without engine settings."""
        grid = self.grid
        columns = [k for k in range(grid.mean.shape[1]) if self.is_option(k)]
        rows = [(c, grid.row(c)) for c in self.concurrencies]
        return {
            "ranges": [list(drafted) for drafted in self.schedule.ranges],
            "speculate": self.schedule.speculates,
            "cap": self.cap,
            "speedup": self.schedule.mean_speedup(),
            "regret_bound": self.regret_bound,
            "worth": [
                {"range": list(drafted), "speedup": mean, "low": low, "high": high}
                for drafted in self.schedule.ranges
                for mean, low, high in [self.worth(drafted)]
            ],
            "predictions": [
                {
                    "concurrency": c,
                    "draft_length": length_of(k),
                    "tokens_per_second": float(grid.mean[row, k]),
                    "low": float(grid.low[row, k]),
                    "high": float(grid.high[row, k]),
                    "measured": bool(grid.measured[row, k]),
                }
                for c, row in rows
                for k in columns
            ],
            **({"capacity": [dict(vars(one)) for one in self.capacity]} if self.capacity else {}),
            "break_even": list(self.break_even),
            "notes": list(self.notes),
        }
