"""Costs of blocks of tasks at one speculation length: which fit, their stage times by scenario, and
coarser ones.

Bounds run over all blocks (e, b). Where those are too many, the tasks are cut into *cells* of equal
(real) size, and blocks begin and end between cells only. `coarsened` lowers the costs so that this
loses no bound: see there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import Stages

RANGES = 3
"""Decoding steps are bounded in this many ranges."""


@dataclass(frozen=True)
class Tables:
    """Stage times of blocks (e, b) by scenario s for one speculation length.

    Parameters
    ----------
    linear
        Whether stage times are affine in the size.
    d, v
        Draft and verify times [s, b, e]; if linear [s, 0, e] per cell and [s, 1, e] per batch.
    width
        Most cells of a block by its end.
    least
        Fewest cells of a block.
    cell
        Tasks per cell.
    """

    linear: bool
    d: Floats
    v: Floats
    width: Ints
    least: int = 1
    cell: float = 1.0

    @property
    def arrays(self) -> tuple[bool, Floats, Floats, Ints]:
        """The fields of the kernels' record `Costs`."""
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
        """Last end at which a block of b fits, for b = 0.. to the largest: wide ones fit early
        only.
        """
        found = np.full(int(self.width.max()) + 1, self.cells, np.int64)
        for end, size in enumerate(self.width):
            found[1 : size + 1] = end
        return found

    def costs(self, table: Floats, layers: Ints | slice, ends: Ints, sizes: Ints) -> Floats:
        """Return the costs of blocks in layers of a table like these."""
        if self.linear:
            return sizes * table[layers, 0, ends] + table[layers, 1, ends]
        return table[layers, sizes, ends]

    def times(self, ends: Ints, sizes: Ints) -> list[Floats]:
        """Return draft and verify time of blocks over all steps."""
        return [
            self.costs(table, slice(None), ends, sizes).sum(axis=0) for table in (self.d, self.v)
        ]


def widths(prepared: Prepared) -> Ints:
    """Return, for every end e = 1..K, the largest block that ends there and fits; conservative
    output lengths.
    """
    outputs = float(prepared.problem.longest_output)
    different, place = np.unique(prepared.inputs, return_inverse=True)
    most = np.array([prepared.largest(padded, outputs) for padded in different.tolist()])
    return np.append(0, np.minimum(np.arange(1, prepared.tasks + 1), most[place]))


def range_starts(steps: int, ranges: int) -> Ints:
    """Return where the prefill step and the ranges of decoding steps begin, and where the last one
    ends.
    """
    return np.concatenate(([1], 2 + (steps - 1) * np.arange(ranges + 1) // ranges))


def scenario_tables(at: Stages, width: Ints, kernels: Any) -> Tables:
    """Return the stage times of all blocks by scenario: the prefill step, and ranges of decoding
    steps.
    """
    steps, tasks = int(at.steps[0]), at.prepared.tasks
    starts = range_starts(steps, RANGES)
    filled = np.minimum(width, 1) if at.linear else width
    d, v = np.zeros((2, RANGES + 1, int(filled.max()) + 1, tasks + 1))
    kernels.scenario_tables(at.data, filled, starts, d, v)
    if at.linear:  # a batch of b costs the overheads and b times what is left of one alone
        for table, passes, pieces in (
            (d, at.length, at.arrays[2][0]),
            (v, 1, at.arrays[2][1]),
        ):
            fixed = np.diff(starts)[:, None] * passes * pieces[0, 1]
            table[:, 0], table[:, 1] = table[:, 1] - fixed, fixed
    return Tables(at.linear, d, v, width)


def coarsened(tables: Tables, cells: int) -> Tables | None:
    """Return tables over fewer cells in which no plan costs more, weighted as may be; None if that
    is not possible.

    Take a plan whose block ends lie anywhere, and round them all up or down to ends of cells by one
    random threshold, each in the mean to itself. Sizes are then rounded up or down, too, and some
    blocks may become empty. Let rates R be linear on every cell, nowhere above those of the tables
    and not falling. The block of the tasks i..x costs (X - I) R(X) when rounded. In the mean that
    is at most (x - i) R(x) plus the excess of the chord of X R(X), a quarter of the cell times the
    growth of R over it. Rounded up and down together, i and R go, at worst, apart. The fixed cost
    of a batch is lowered by that much. So some rounded plan costs no more than the plan.
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
    if np.minimum(*coarse)[:, 1].sum(axis=0).min() < 0.0:  # a pool may leave out empty blocks
        return None
    width = np.zeros(cells + 1, np.int64)
    most = np.ceil(tables.width / cell).astype(np.int64)
    for rounded in (np.floor, np.ceil):
        np.maximum.at(width, np.minimum(rounded(place / cell), cells).astype(np.int64), most)
    width = np.minimum(np.maximum.accumulate(width[::-1])[::-1], np.arange(cells + 1))
    return Tables(True, coarse[0], coarse[1], width, least=0, cell=cell)


def _of_both_cells(values: Floats) -> Floats:
    """Return, for every end of a cell, the larger value of the cells on its sides."""
    return np.asarray(np.maximum(np.append(values, values[-1]), np.append(values[0], values)))
