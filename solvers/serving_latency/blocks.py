"""Costs of blocks of tasks at one speculation length: the blocks that fit in memory, their stage
times by scenario, and coarser tables.

A block (e, b) consists of b consecutive tasks in sorted order and ends with task e. Bounds consider
all blocks. If there are too many blocks, the tasks are divided into *cells* of equal (real) size,
and blocks begin and end only between cells. `coarsened` lowers the costs so that the bounds remain
valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import Stages

RANGES = 3
"""Number of ranges into which the decoding steps are divided for the bounds."""


@dataclass(frozen=True)
class Tables:
    """Stage times of blocks (e, b) by scenario s for one speculation length.

    Parameters
    ----------
    linear
        Whether stage times are affine in the size.
    d, v
        Draft and verify times [s, b, e]; if `linear`, [s, 0, e] is the time per cell and [s, 1, e]
        the time per batch.
    width
        Maximum number of cells in a block, by the block's end.
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
        """Fields of the kernels' record `Costs`."""
        return self.linear, self.d, self.v, self.width

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.width) - 1

    @property
    def entries(self) -> int:
        """Number of blocks."""
        return int(self.width.sum())

    @property
    def last(self) -> Ints:
        """Last end at which a block of b cells fits in memory, for b from 0 to the largest size.

        Wide blocks fit only if they end early.
        """
        found = np.full(int(self.width.max()) + 1, self.cells, np.int64)
        for end, size in enumerate(self.width):
            found[1 : size + 1] = end
        return found

    def costs(self, table: Floats, layers: Ints | slice, ends: Ints, sizes: Ints) -> Floats:
        """Return the costs of blocks in the given layers of a table that is laid out like `d` and
        `v`.
        """
        if self.linear:
            return sizes * table[layers, 0, ends] + table[layers, 1, ends]
        return table[layers, sizes, ends]

    def times(self, ends: Ints, sizes: Ints) -> list[Floats]:
        """Return the draft and verify times of blocks, summed over all steps."""
        return [
            self.costs(table, slice(None), ends, sizes).sum(axis=0) for table in (self.d, self.v)
        ]


def widths(prepared: Prepared) -> Ints:
    """Return, for every end e = 1..K, the size of the largest block that fits in memory, for
    conservative output lengths.
    """
    outputs = float(prepared.problem.longest_output)
    different, place = np.unique(prepared.inputs, return_inverse=True)
    most = np.array([prepared.largest(padded, outputs) for padded in different.tolist()])
    return np.append(0, np.minimum(np.arange(1, prepared.tasks + 1), most[place]))


def range_starts(steps: int, ranges: int) -> Ints:
    """Return the first step of the prefill and of every range of decoding steps, and the end of the
    last range.
    """
    return np.concatenate(([1], 2 + (steps - 1) * np.arange(ranges + 1) // ranges))


def scenario_tables(at: Stages, width: Ints, kernels: Any) -> Tables:
    """Return the stage times of all blocks by scenario. The scenarios are the prefill step and
    ranges of decoding steps.
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
    """Return tables with fewer cells in which no plan costs more, or None if such tables cannot be
    built.

    The costs remain valid for any weights of the scenarios. Consider a plan with arbitrary block
    ends, and round all ends up or down to ends of cells by one random threshold, so that each end
    is unchanged on average. The sizes are then also rounded up or down, and some blocks may become
    empty. Let the rates R be linear on every cell, non-decreasing, and nowhere above the rates of
    the tables. The block of the tasks i..x costs (X - I) R(X) when rounded. On average, this cost
    is at most (x - i) R(x) plus the excess of the chord of X R(X), which is a quarter of the cell
    times the growth of R over the cell. At worst, rounding moves i and R apart, so the fixed cost
    of a batch is lowered by that excess. Hence some rounded plan costs no more than the original
    plan.
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
    """Return, for every end of a cell, the larger of the values of the two adjacent cells."""
    return np.asarray(np.maximum(np.append(values, values[-1]), np.append(values[0], values)))
