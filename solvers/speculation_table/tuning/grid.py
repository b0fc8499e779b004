"""Grids of predicted throughput by batch size and draft length, on which choices are based."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats, Truths
from specopt.models.sweep import Condition, Point
from specopt.solvers.speculation_table.prices import Price
from specopt.solvers.speculation_table.schedule import Range
from specopt.solvers.speculation_table.tuning.predictions import Predictor

Case = tuple[str, int, float]
"""A case to serve: a workload, a context length, and their share of the tokens."""


def column_of(draft_length: int | None) -> int:
    """Return the index of the column for an option in a grid.

    Column 0 is no speculation, and column k + 1 is k drafts.
    """
    return 0 if draft_length is None else draft_length + 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """Predicted throughput by batch size and option, with bands.

    Rows are batch sizes, and columns are options: no speculation, and 0, 1, 2, ... drafts.

    Parameters
    ----------
    sizes
        Batch sizes, increasing.
    mean, low, high
        Predicted throughput in tokens per second, and the lower and upper ends of its band. Options
        that are not considered have NaN.
    least, most
        Lower and upper limits of the speed-up over no speculation. They are tighter than the bands
        of the throughput imply, because the errors of the throughputs with and without speculation
        are correlated.
    doubt
        Half-width of the band of the log speed-up with a coverage of 50 %.
    measured
        Whether each point was measured for all workloads and contexts.
    slower
        Whether some measurement of each point was slower than no speculation at the same load.
    """

    sizes: tuple[int, ...]
    mean: Floats
    low: Floats
    high: Floats
    least: Floats
    most: Floats
    doubt: Floats
    measured: Truths
    slower: Truths

    def row(self, size: int) -> int:
        """Return the index of the row for a batch size."""
        return self.sizes.index(size)


def length_of(column: int) -> int | str:
    """Return the draft length that a column represents, in the form used in files."""
    return "none" if column == 0 else column - 1


def name_of(ranges: Sequence[Range]) -> int | str:
    """Return the name of a configuration, which is a draft length, "none" or "table"."""
    return "table" if len(ranges) > 1 else length_of(column_of(ranges[0][2]))


def geometric_mean(values: Floats, weights: Floats | None = None) -> float:
    """Return the geometric mean of positive numbers, optionally weighted."""
    return float(np.exp(np.average(np.log(values), weights=weights)))


def grid_of(
    predictor: Predictor,
    cases: Sequence[Case],
    sizes: tuple[int, ...],
    lengths: Sequence[int],
    idle_price: Price,
) -> Grid:
    """Return a grid of the predicted throughput without speculation and with each draft length.

    If there are several cases, their times per token are averaged, with the shares of the tokens as
    weights.
    """
    idle = 0 in predictor.sweep.draft_lengths
    options = [None, *(length for length in lengths if length or idle)]
    taken, shape = [*map(column_of, options)], (len(sizes), lengths[-1] + 2)
    parts, (measured, slower) = np.full((6, *shape), np.nan), np.zeros((2, *shape), bool)
    parts[:, :, taken], measured[:, taken] = 0.0, True
    compared = [predictor.sweep.relative, *options[1:]]
    for workload, context, share in cases:
        points = [
            Point(Condition(size, workload, context), option)
            for size in sizes
            for option in compared
        ]
        found, every = predictor.predict(points), (len(sizes), len(options))
        speed, seen = found.mean.reshape(every), found.measured.reshape(every)
        # The deviations of several cases are added, as if their errors were fully correlated.
        widths = [
            np.ones_like(found.mean),
            np.log(found.mean / found.low),
            np.log(found.high / found.mean),
            found.less,
            found.more,
            found.doubt,
        ]
        parts[:, :, taken] += np.reshape(widths, (6, *every)) * (share / speed)
        measured[:, taken] &= seen
        slower[:, taken] |= seen & seen[:, :1] & (speed < speed[:, :1])
    mean = 1.0 / parts[0]
    if len(cases) == 1:
        mean[:, taken] = speed  # without rounding
    below, above, less, more, doubt = parts[1:] / parts[0]
    low, high, speedup = mean * np.exp(-below), mean * np.exp(above), mean / mean[:, :1]
    least, most = speedup * np.exp(-less), speedup * np.exp(more)
    if not idle and predictor.sweep.zero_is_none:
        for array in (mean, low, high, measured):
            array[:, 1] = array[:, 0]
        least[:, 1] = most[:, 1] = 1.0
    elif not idle and predictor.sweep.relative is None:
        cheap, usual, dear = idle_price.at(sizes)
        for array, lost in ((low, dear), (mean, usual), (high, cheap)):
            array[:, 1] = (1.0 - lost) * array[:, 0]
        least[:, 1], most[:, 1] = 1.0 - dear, 1.0 - cheap
        measured[:, 1] = False
    least[:, 0] = most[:, 0] = 1.0
    return Grid(
        sizes=sizes,
        mean=mean,
        low=low,
        high=high,
        least=least,
        most=most,
        doubt=np.nan_to_num(doubt),
        measured=measured,
        slower=slower,
    )
