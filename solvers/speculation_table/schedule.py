"""Schedules, which specify the draft length for every batch size.

Engines are configured from schedules.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats

Range = tuple[int, int, int | None]
"""A range of batch sizes in a schedule.

The entries are its first and last batch size (inclusive), and the number of drafts per step, or
None for no speculation.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Schedule:
    """The number of drafts per step for every batch size from 1 to a maximum.

    Parameters
    ----------
    ranges
        Ranges of batch sizes, starting at 1, without gaps or overlaps. Because speculation is
        either enabled or disabled in an engine, the drafts are either None in a single range, or
        integers of which at least one is positive. With speculation enabled, steps with 0 drafts
        are slower than without speculation.
    batches
        Batch sizes at which the speed-up is known, increasing.
    speedups
        Throughput with 0, 1, ..., K drafts relative to no speculation, with shape (len(batches), K
        + 1). Unknown entries are NaN. If all entries are unknown, the value is None.
    weights
        Weights of `batches` in mean speed-ups, or None for equal weights.
    """

    ranges: tuple[Range, ...]
    batches: tuple[int, ...] = ()
    speedups: Floats | None = None
    weights: Floats | None = None

    def __post_init__(self) -> None:
        start = 1
        for i, (low, high, drafts) in enumerate(self.ranges):
            if integer(f"ranges[{i}]: first batch", low, 1) != start:
                raise InvalidInput(
                    f"ranges[{i}]: expected a range that starts at batch {start}, got {low}"
                )
            start = integer(f"ranges[{i}]: last batch", high, low) + 1
            if drafts is not None:
                integer(f"ranges[{i}]: drafts", drafts, 0)
        drafts_taken = [drafts for *_, drafts in self.ranges]
        if drafts_taken != [None] and (None in drafts_taken or not any(drafts_taken)):
            raise InvalidInput(
                "ranges: expected a single range of None, or draft lengths of which at least one is"
                " positive"
            )
        if self.speedups is not None and (
            self.speedups.ndim != 2
            or len(self.speedups) != len(self.batches)
            or not len(self.batches)
            or list(self.batches) != sorted(set(self.batches))
            or self.batches[0] < 1
            or (self.weights is not None and self.weights.shape != (len(self.batches),))
        ):
            raise InvalidInput(
                "speedups: expected one row and one weight per batch size, with batch sizes in"
                " increasing order"
            )

    @property
    def speculates(self) -> bool:
        """Whether the schedule enables speculation."""
        return self.ranges[0][2] is not None

    @property
    def longest(self) -> int:
        """Maximum number of drafts per step, which is 0 without speculation."""
        return max(drafts or 0 for *_, drafts in self.ranges)

    @property
    def largest_batch(self) -> int:
        """Largest batch size of the schedule, which is the end of the last range."""
        return self.ranges[-1][1]

    def at(self, batch: int) -> int | None:
        """Return the number of drafts at a batch size, or None without speculation.

        The last range also covers all larger batch sizes.
        """
        return next(
            (drafts for _, high, drafts in self.ranges if batch <= high), self.ranges[-1][2]
        )

    def mean_speedup(self, drafts: int | None = None) -> float | None:
        """Return the weighted geometric mean of the speed-ups at `batches`.

        If `drafts` is specified, this number of drafts is used at every batch size instead of the
        schedule's numbers. The result is None if a required speed-up is unknown, and 1 without
        speculation.
        """
        if drafts is None and not self.speculates:
            return 1.0
        taken = [(self.at(batch) or 0) if drafts is None else drafts for batch in self.batches]
        if self.speedups is None or max(taken) >= self.speedups.shape[1]:
            return None
        values = self.speedups[np.arange(len(taken)), taken]
        if not (np.isfinite(values) & (values > 0.0)).all():
            return None
        return float(np.exp(np.average(np.log(values), weights=self.weights)))

    def best_single(self) -> tuple[int, float] | None:
        """Return the constant draft length >= 1 with the highest mean speed-up over `batches`.

        Returns
        -------
        tuple or None
            Draft length and its mean speed-up, or None if no draft length has known speed-ups at
            all `batches`. Ties go to the smaller length.
        """
        lengths = 0 if self.speedups is None else self.speedups.shape[1]
        means = ((k, self.mean_speedup(k)) for k in range(1, lengths))
        known = [(k, mean) for k, mean in means if mean is not None]
        return max(known, key=lambda pair: pair[1], default=None)
