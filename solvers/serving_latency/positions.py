"""Bounds over pipeline positions, and an enumeration that several bounds prune together.

Any weights of the critical positions yield a bound on all plans. The values of the corresponding
shortest path also bound every way to continue from a prefix and a set of occupied positions; see
`specopt.solvers.serving_latency.kernels.bounds`. The weights with the best bound at the root are
not the best elsewhere: if a partial plan drafts for long before its first special position, weights
on that position yield the best bound. So the depth-first search keeps the values for several
weights and prunes with each of them. If the search does not end soon, it adds the weights with the
best bound on its current branch.

Threads share the long computations in such a way that no result depends on the order or number of
threads. The threads share the independent states of a shortest path, and the branches of the
search. Branches are split and searched in rounds, with the incumbent and the weights at the
beginning of each round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from specopt.models.errors import OutOfTime
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.blocks import Tables
from specopt.solvers.threads import in_threads

# These values affect the time of an enumeration, not its result.
_SECONDS_PER_ENTRY = 1.5e-9  # per entry of a shortest path, roughly
ENTRIES_PER_NODE = 100  # entries of a shortest path that take as long as one enumeration node
SECONDS_PER_NODE = ENTRIES_PER_NODE * _SECONDS_PER_ENTRY
_WEIGHTS = 12  # maximum number of weights that prune together
_KEPT = 20_000_000  # maximum number of entries of their values
_ROUNDS = 8  # evaluations to find new weights
_LARGE = 10_000_000  # entries of shortest paths above which threads share them
_BRANCHES = 4  # enumeration branches searched in parallel, regardless of the number of workers
LEAVES = 256  # leaves per kernel call
_NOTHING = np.zeros((3, 0), np.int64)


@dataclass(frozen=True)
class Positions:
    """The distinguished positions in the pipeline.

    Parameters
    ----------
    front, specials
        Number of special positions at the front, and in total; the other positions form a pool
        between the special positions.
    pool
        Number of blocks in the pool.
    more
        Whether the pool may contain any number of blocks; if so, `pool` is 0.
    """

    front: int
    specials: int
    pool: int
    more: bool

    @property
    def states(self) -> int:
        """Number of states of a shortest path."""
        return (self.pool + 1) << self.specials

    @property
    def steps(self) -> int:
        """Number of steps per block in a shortest path, which is the number of states times
        positions.
        """
        return self.states * (self.specials + 1)


Path = Ints
"""A plan found as a shortest path, shape (3, M): the ends, sizes and positions of its blocks in
sorted order. Blocks in the pool have the number of special positions as their position.
"""


class PathBound:
    """The Lagrangian bound at given weights."""

    def __init__(self, tables: Tables, at: Positions, budget: Budget) -> None:
        self.tables, self.at = tables, at
        self.work = 0.0  # entries of shortest paths so far
        self.kernels: Any = budget.load("serving_latency.bounds")
        self.budget, self._last = budget, tables.last
        self.costs = self.kernels.Costs(*tables.arrays)
        self.places = self.kernels.Places(at.front, at.pool, at.more)
        self.table: Floats = np.zeros((at.specials + 1, *tables.d.shape[1:]))
        self.value: Floats = np.empty((at.states, tables.cells + 1))
        self._path = np.zeros((3, tables.cells + at.specials + at.pool), np.int64)
        self._blocks = np.zeros(1, np.int64)
        every = np.arange(at.states)[::-1].copy()
        self._states = [[every]]  # states in a group are independent of each other
        if budget.workers > 1 and tables.entries * at.steps > _LARGE:
            placed = (every >> at.specials) + sum(every >> p & 1 for p in range(at.specials))
            groups = [every[placed == count] for count in range(placed[0], -1, -1)]
            self._states = [
                [group[k :: budget.workers].copy() for k in range(budget.workers)]
                for group in groups
            ]

    def evaluate(self, weights: Floats, start: Ints = _NOTHING) -> tuple[float, Path, Floats]:
        """Return the bound on all plans that begin with the blocks `start` (ends, sizes,
        positions), with the path and the gradient of the bound.

        The costs by position are stored in `table`, and the values by state in `value`.
        """
        entries = float(self.tables.entries * self.at.steps)
        if entries * _SECONDS_PER_ENTRY > self.budget.remaining:  # a path cannot be interrupted
            raise OutOfTime
        self.budget.check()
        self.work += entries
        self.budget.spend(entries * _SECONDS_PER_ENTRY)
        gradient = np.zeros_like(weights)
        count = self._blocks[0] = start.shape[1]
        self._path[:, :count] = start
        self.kernels.compose(self.costs, self.at.front, weights, self.table, self.value)
        rest = self.tables.least, self.places, self.table, self.value
        fill = partial(self.kernels.shortest_paths, self.costs, self._last, *rest)
        for states in self._states:
            in_threads(self.budget.workers, fill, states)
        bound = self.kernels.lagrangian(self.costs, *rest, self._path, self._blocks, gradient)
        return bound, self._path[:, : self._blocks[0]].copy(), gradient


def _levels(branch: Any) -> int:
    """Return the number of open levels of a branch after its first level, which is negative if the
    branch is finished.
    """
    return int(branch.state[0] - branch.state[2])


def _begun(branch: Any, level: int) -> Ints:
    """Return the first blocks of the current path: ends, sizes and positions."""
    ends = branch.stack[: level + 1, 0]
    return np.stack([ends[1:], np.diff(ends), branch.stack[:level, 3]])


class Enumeration:
    """Enumeration of all ways to cut the tasks and to place the blocks that the bounds do not rule
    out.
    """

    def __init__(self, bound: PathBound, weights: Floats) -> None:
        self.bound = bound
        self._weights = weights
        most = max(2, min(_WEIGHTS, _KEPT // (bound.table.size + bound.value.size)))
        self._tables: Floats = np.zeros((most, *bound.table.shape))
        self._values: Floats = np.zeros((most, *bound.value.shape))
        self._kept = 0
        self._closed = np.zeros(most, np.int64)
        tasks, at = bound.tables.cells, bound.at
        branch = bound.kernels.Paths(
            np.zeros((tasks + 1, 4), int),
            np.zeros((tasks + 1, most)),
            self._closed.copy(),
            np.zeros(4, int),
            np.zeros((LEAVES, 3, tasks), int),
            np.zeros(LEAVES, int),
            np.zeros((len(bound.tables.d), at.specials)),
        )
        self._branches = [branch]
        self.nodes = 0
        bound.evaluate(weights)
        self._keep(self._slot())

    @property
    def done(self) -> bool:
        """Whether no branches are left."""
        return not self._branches

    @property
    def work(self) -> float:
        """Work done so far, in entries of shortest paths."""
        return self.bound.work + ENTRIES_PER_NODE * self.nodes

    def advance(self, nodes: int, upper: float) -> list[Path]:
        """Continue the search for a number of nodes, and return the paths found whose bound is
        below `upper`.

        A search that does not end immediately is split where most of the work is left. In the
        meantime, no branch depends on the results of other branches.
        """
        bound = self.bound
        while self.nodes > 0 and len(self._branches) < _BRANCHES:
            widest = max(self._branches, key=_levels)
            if _levels(widest) == 0:
                break
            other = type(widest)(*map(np.copy, widest))
            other.state[0] = widest.state[2]
            widest.state[2] += 1
            self._branches.append(other)
        enumerate_paths, each = bound.kernels.enumerate_paths, nodes // len(self._branches)
        tables, values = self._tables[: self._kept], self._values[: self._kept]

        def search(branch: Any) -> None:
            enumerate_paths(each, bound.costs, bound.places, tables, values, upper, branch)

        paths = []
        in_threads(bound.budget.workers, search, self._branches)
        for branch in self._branches:
            bound.budget.spend(int(branch.state[1]) * SECONDS_PER_NODE)
            self.nodes += int(branch.state[1])
            self._closed += branch.closed
            branch.closed[:] = 0
            paths += [
                branch.leaves[k, :, : branch.blocks[k]].copy() for k in range(branch.state[3])
            ]
        # sharpen another branch next
        self._branches = [
            branch for branch in self._branches[1:] + self._branches[:1] if _levels(branch) >= 0
        ]
        return paths

    def sharpen(self, upper: float) -> None:
        """Find and keep the weights with the best bound on the plans that begin like a third of a
        current path.

        Close that part of the search if its bound reaches `upper`.
        """
        from specopt.solvers.serving_latency.cutting_planes import CuttingPlanes

        branch = self._branches[0]
        if branch.state[3] == LEAVES:
            return
        level = max(int(branch.state[2]) + 1, int(branch.state[0]) // 3)
        start = _begun(branch, level)
        slot = self._slot()
        weights, best = self._weights, -np.inf
        planes = CuttingPlanes(weights, upper)
        for _ in range(_ROUNDS):
            bound, _, gradient = self.bound.evaluate(weights, start)
            if bound > best:
                best = bound
                self._keep(slot)
            if best >= upper:
                branch.state[0] = level - 1
                return
            planes.learn(weights, bound, gradient)
            proposal = planes.propose()
            if proposal is None:
                return
            weights = proposal

    def _slot(self) -> int:
        """Return the slot for new weights: a free slot if there is one, otherwise the slot that has
        recently closed the fewest branches.
        """
        if self._kept < len(self._tables):
            self._kept += 1
            slot = self._kept - 1
        else:
            slot = 1 + int(np.argmin(self._closed[1:]))
        self._closed //= 2
        self._closed[slot] = self._closed.max() + 1
        return slot

    def _keep(self, slot: int) -> None:
        """Store the costs and values of the latest evaluation in a slot."""
        bound = self.bound
        self._tables[slot], self._values[slot] = bound.table, bound.value
        for branch in self._branches:
            level = int(branch.state[0])
            costs = bound.tables.costs(bound.table, *_begun(branch, level)[[2, 0, 1]])
            branch.spent[0, slot] = 0.0
            branch.spent[1 : level + 1, slot] = np.cumsum(costs)
