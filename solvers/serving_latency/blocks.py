"""Cost tables for blocks of consecutive tasks at one speculation length.

The module determines which blocks fit in memory, computes their stage times in each scenario, and
can build coarser tables.

A block (e, b) consists of b consecutive tasks in sorted order and ends with task e. The lower
bounds consider all blocks. If there are too many of them, the tasks are divided into *cells* of
equal size, which need not be an integer, and blocks begin and end only between cells. `coarsened`
lowers the costs enough for the bounds to remain valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import Stages

RANGES = 3
"""Number of ranges into which the decoding steps are divided when bounds are computed."""


@dataclass(frozen=True)
class Tables:
    """Draft and verify times of every block (e, b) in every scenario s, for one speculation length.

    Parameters
    ----------
    linear
        Whether stage times are affine functions of the block size.
    d, v
        Draft and verify times, indexed by [s, b, e]. If `linear` is true, [s, 0, e] is the time per
        cell and [s, 1, e] is the time per batch.
    width
        Maximum number of cells in a block that ends at each position.
    least
        Minimum number of cells in a block.
    cell
        Number of tasks per cell.
    """

    linear: bool
    d: Floats
    v: Floats
    width: Ints
    least: int = 1
    cell: float = 1.0

    @property
    def arrays(self) -> tuple[bool, Floats, Floats, Ints]:
        """Fields for the record `Costs`, which compiled kernels accept."""
        return self.linear, self.d, self.v, self.width

    @property
    def cells(self) -> int:
        """Number of cells into which the tasks are divided."""
        return len(self.width) - 1

    @property
    def entries(self) -> int:
        """Number of blocks that fit in memory."""
        return int(self.width.sum())

    @property
    def last(self) -> Ints:
        """Last end position at which a block of b cells fits in memory, for b from 0 to the largest
        size.

        Inputs grow with the position, so wide blocks fit only if they end early.
        """
        found = np.full(int(self.width.max()) + 1, self.cells, np.int64)
        for end, size in enumerate(self.width):
            found[1 : size + 1] = end
        return found

    def costs(self, table: Floats, layers: Ints | slice, ends: Ints, sizes: Ints) -> Floats:
        """Look up the costs of the blocks with the given ends and sizes.

        `table` is laid out like `d` and `v`, and `layers` selects scenarios.
        """
        if self.linear:
            return sizes * table[layers, 0, ends] + table[layers, 1, ends]
        return table[layers, sizes, ends]

    def times(self, ends: Ints, sizes: Ints) -> list[Floats]:
        """Return the total draft time and the total verify time of each block over all steps, in
        seconds.
        """
        return [
            self.costs(table, slice(None), ends, sizes).sum(axis=0) for table in (self.d, self.v)
        ]


def widths(prepared: Prepared) -> Ints:
    """Return, for each end position e = 1..K, the size of the largest block that ends there and
    fits in memory.

    Conservative output lengths are assumed. Entry 0 of the result is 0.
    """
    outputs = float(prepared.problem.longest_output)
    different, place = np.unique(prepared.inputs, return_inverse=True)
    most = np.array([prepared.largest(padded, outputs) for padded in different.tolist()])
    return np.append(0, np.minimum(np.arange(1, prepared.tasks + 1), most[place]))


def range_starts(steps: int, ranges: int) -> Ints:
    """Return the first step of each scenario, followed by the end of the last scenario. The
    scenarios are the prefill step and ranges of decoding steps.
    """
    return np.concatenate(([1], 2 + (steps - 1) * np.arange(ranges + 1) // ranges))


def scenario_tables(at: Stages, width: Ints, kernels: Any) -> Tables:
    """Return the stage times of all blocks in every scenario. The first scenario is the prefill
    step, and each of the other scenarios is a range of decoding steps.
    """
    steps, tasks = int(at.steps[0]), at.prepared.tasks
    starts = range_starts(steps, RANGES)
    filled = np.minimum(width, 1) if at.linear else width
    d, v = np.zeros((2, RANGES + 1, int(filled.max()) + 1, tasks + 1))
    kernels.scenario_tables(at.data, filled, starts, d, v)
    if at.linear:  # a batch of b costs the overheads plus b times the rest for a batch of one
        for table, passes, pieces in (
            (d, at.length, at.arrays[2][0]),
            (v, 1, at.arrays[2][1]),
        ):
            fixed = np.diff(starts)[:, None] * passes * pieces[0, 1]
            table[:, 0], table[:, 1] = table[:, 1] - fixed, fixed
    return Tables(at.linear, d, v, width)


def coarsened(tables: Tables, cells: int) -> Tables | None:
    """Return tables with fewer cells that never overestimate the optimal cost, or None if no such
    tables can be built.

    The costs remain valid for any weights of the scenarios. Take a plan with arbitrary block ends.
    A single random threshold decides whether each end is rounded up or down to a cell boundary,
    such that each end is unchanged on average. The sizes are then also rounded up or down, and some
    blocks may become empty. Let R be a non-decreasing function that is linear on every cell and
    never exceeds the per-task times in the tables. After its ends i and x are rounded to I and X, a
    block costs (X - I) R(X). On average, this cost is at most (x - i) R(x) plus the excess of the
    chord of X R(X). The excess is a quarter of the cell size times the growth of R over the cell.
    At worst, rounding moves i and R apart, so the fixed cost of a batch is lowered by that excess.
    Hence some rounded plan costs no more than the original plan.
    """
    tasks = tables.cells
    if not tables.linear or tables.least == 0 or not 1 <= cells < tasks:
        return None
    cell = tasks / cells
    ends, place = np.arange(cells + 1) * cell, np.arange(tasks + 1)
    inside = np.minimum(place / cell, cells - 1).astype(np.int64)
    coarse = []
    for table in (tables.d, tables.v):
        found = np.empty((len(table), 2, cells + 1))
        for fine, new in zip(table, found, strict=True):
            rates = np.append(fine[0, 1], fine[0, 1:])
            rough = np.interp(ends, place, rates)
            above = np.zeros(cells)
            np.maximum.at(above, inside, np.interp(place, ends, rough) - rates)
            rough -= _of_both_cells(above)
            rough = np.minimum.accumulate(rough[::-1])[::-1]
            new[0] = cell * rough
            new[1] = fine[1, 1] - _of_both_cells(0.25 * np.diff(new[0]))
        coarse.append(found)
    if np.minimum(*coarse)[:, 1].sum(axis=0).min() < 0.0:  # a pool may omit empty blocks
        return None
    width = np.zeros(cells + 1, np.int64)
    most = np.ceil(tables.width / cell).astype(np.int64)
    for rounded in (np.floor, np.ceil):
        np.maximum.at(width, np.minimum(rounded(place / cell), cells).astype(np.int64), most)
    width = np.minimum(np.maximum.accumulate(width[::-1])[::-1], np.arange(cells + 1))
    return Tables(True, coarse[0], coarse[1], width, least=0, cell=cell)


def _of_both_cells(values: Floats) -> Floats:
    """Return, for every cell boundary, the larger of the values of the two adjacent cells."""
    return np.asarray(np.maximum(np.append(values, values[-1]), np.append(values[0], values)))
