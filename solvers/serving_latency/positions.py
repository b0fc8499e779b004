"""Lagrangian bounds over pipeline positions, and an enumeration that uses several of these bounds
for pruning.

Any weights of the critical positions yield a bound on all plans. The values of the corresponding
shortest path also bound every way to continue from a prefix and a set of occupied positions (see
`specopt.solvers.serving_latency.kernels.bounds`).

The weights that yield the highest bound at the root are not the best in every branch. For example,
if a partial plan drafts for long before its first special position, weights on that position yield
the highest bound. The depth-first search therefore keeps the values for several weights and prunes
with each of them. If the search does not end soon, it adds the weights with the highest bound for
its current branch.

Long computations run in several threads, but no result depends on the order or number of threads.
The independent states of a shortest path and the branches of the search are distributed over the
threads. Branches are searched in rounds. Each round uses the incumbent and the weights that were
known when it began.
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
_SECONDS_PER_ENTRY = 8e-10  # mean per entry of a shortest path; it takes up to twice as long
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
    """The division of the pipeline into special positions, which a bound distinguishes, and a pool
    of other positions.

    Parameters
    ----------
    front, specials
        Number of special positions at the front of the pipeline, and in total. The remaining
        special positions are at the end, and all other positions form a pool in between.
    pool
        Number of blocks in the pool.
    more
        Whether the pool may contain any number of blocks. If so, `pool` is 0.
    """

    front: int
    specials: int
    pool: int
    more: bool

    @property
    def states(self) -> int:
        """Number of states in the shortest-path problem. A state stores which special positions are
        occupied and how many blocks are in the pool.
        """
        return (self.pool + 1) << self.specials

    @property
    def steps(self) -> int:
        """Number of transitions per block in the shortest-path problem. It is the number of states
        times the number of positions to which a block can be assigned, where the pool counts as one
        position.
        """
        return self.states * (self.specials + 1)


Path = Ints
"""A plan found as a shortest path, with shape (3, M): the ends, sizes and positions of its M blocks
in sorted order. A block in the pool has the number of special positions as its position.
"""


class PathBound:
    """An evaluator of the Lagrangian bound. For given weights of the positions, the bound is the
    length of a shortest path.
    """

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
        """Return the bound on all plans that begin with the blocks `start`, the path that attains
        the bound, and the bound's gradient.

        The rows of `start` are the ends, sizes and positions of the blocks. The costs by position
        are stored in `table`, and the values by state are stored in `value`.
        """
        entries = float(self.tables.entries * self.at.steps)
        # a path cannot be interrupted
        if 2.0 * entries * _SECONDS_PER_ENTRY > self.budget.remaining:
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
    """Return how many levels of a branch are still open below its first level. The number is
    negative if the branch is finished.
    """
    return int(branch.state[0] - branch.state[2])


def _begun(branch: Any, level: int) -> Ints:
    """Return the first `level` blocks of a branch's current path, as rows of ends, sizes and
    positions.
    """
    ends = branch.stack[: level + 1, 0]
    return np.stack([ends[1:], np.diff(ends), branch.stack[:level, 3]])


class Enumeration:
    """A depth-first enumeration of the partitions into blocks and of the assignments of blocks to
    positions.

    Branches that the bounds rule out are pruned.
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
        """Whether the enumeration has finished."""
        return not self._branches

    @property
    def work(self) -> float:
        """Work done so far, measured as the number of shortest-path entries that take the same
        time.
        """
        return self.bound.work + ENTRIES_PER_NODE * self.nodes

    def advance(self, nodes: int, upper: float) -> list[Path]:
        """Continue the search for about `nodes` nodes. Return the paths found whose bound is below
        `upper`.

        If the search does not end immediately, the branches with the most remaining work are split.
        During a call, no branch depends on the results of other branches.
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
        """Find the weights with the highest bound for plans that share the first third of the
        current path, and keep these weights for pruning.

        If the bound reaches `upper`, stop searching these plans.
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
        """Return the slot in which to store new weights. Use a free slot if there is one, and
        otherwise the slot whose bounds have recently pruned the fewest branches.
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
        """Store the costs and values from the latest evaluation of the bound in a slot."""
        bound = self.bound
        self._tables[slot], self._values[slot] = bound.table, bound.value
        for branch in self._branches:
            level = int(branch.state[0])
            costs = bound.tables.costs(bound.table, *_begun(branch, level)[[2, 0, 1]])
            branch.spent[0, slot] = 0.0
            branch.spent[1 : level + 1, slot] = np.cumsum(costs)
