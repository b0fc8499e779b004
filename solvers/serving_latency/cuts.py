"""All ways to cut the tasks that Johnson's order leaves, see `specopt.solvers._kernels.serving_latency.cuts`."""

from __future__ import annotations

from typing import Any

import numpy as np

from specopt.models.fields import Ints
from specopt.solvers.serving_latency.blocks import Tables

# These move how long the search over cuts takes, and when it is given up; not what it proves.
_BINS = 64, 4  # of ranks: in the prefill step, in all others
_LEAVES = 1024  # per kernel call
_NODES = 200_000  # per kernel call
_NODES_PER_CUT = 3000  # that trying its orders takes as long as, at least
_LONGEST = 2e9  # nodes that a search may take in all, as it seems: those of large blocks come later and are fewer


class Cuts:
    """A depth-first search over the cuts at one speculation length, longest inputs first.

    Parameters
    ----------
    tables
        Of all blocks.
    kernels
        Compiled cuts.
    """

    def __init__(self, tables: Tables, kernels: Any) -> None:
        tasks, sizes = tables.cells, np.arange(tables.width.max() + 1)
        every = np.ix_(np.arange(len(tables.d)), sizes, np.arange(tasks + 1))
        times = np.array([tables.costs(table, every[0], every[2], every[1]) for table in (tables.d, tables.v)])
        times = np.stack([times[:, 0], times[:, 1:].sum(axis=1)], axis=1)
        rank = np.zeros(times.shape[1:], dtype=np.int64)
        fits = (sizes[:, None] > 0) & (sizes[:, None] <= tables.width)
        for s, (draft, verify) in enumerate(zip(*times[:, :, fits], strict=True)):
            order = np.lexsort((np.where(draft < verify, draft, -verify), draft >= verify))
            rank[s, fits] = np.argsort(order)
        bins = rank * np.reshape(_BINS, (2, 1, 1)) // np.count_nonzero(fits)
        least = np.empty((*_BINS, tasks + 1))
        kernels.completions(times, bins, tables.width, least)
        self._width, self._enumerate = tables.width, kernels.enumerate_cuts
        self._stack, self._state = np.zeros((tasks + 1, 2), dtype=np.int64), np.zeros(4, dtype=np.int64)
        self._stack[0, 0] = tasks
        critical = np.zeros((tasks + 1, 2, tasks + 1))
        self._search = kernels.Cuts(times, rank, bins, tables.width, least, self._stack, critical, self._state)
        self.left: list[tuple[float, Ints]] = []
        """Cuts whose orders are to be tried, as block ends, with their bounds; the least comes last."""
        self.stuck = False
        """Whether the orders of a cut were too many."""

    @property
    def done(self) -> bool:
        """Whether nothing is left, and nothing was given up."""
        return bool(self._state[0] < 0) and not self.left and not self.stuck

    @property
    def promising(self) -> bool:
        """Whether the search may end: by the share of cuts that it is through with, if every size were as likely."""
        level = self._state[0] + 1
        ends, sizes = self._stack[:level].T
        share = ((sizes - 1) * np.cumprod(1.0 / self._width[ends])).sum() if level else 1.0
        return not self.stuck and bool(self._state[1] <= max(_NODES, _LONGEST * share))

    def pop(self) -> tuple[float, Ints]:
        """Return the cut of the least bound that is left, with its bound."""
        self._state[1] += _NODES_PER_CUT
        return self.left.pop()

    def advance(self, upper: float) -> None:
        """Go on for a while; keep the cuts whose bound is below `upper`."""
        leaves, bounds = np.zeros((_LEAVES, len(self._width) - 1), dtype=np.int64), np.empty(_LEAVES)
        found = self._enumerate(_NODES, self._search, upper, leaves, bounds)
        for sizes, bound in zip(leaves[:found], bounds[:found].tolist(), strict=True):
            self.left.append((bound, np.cumsum(sizes[sizes > 0][::-1])))
        self.left.sort(key=lambda item: -item[0])
