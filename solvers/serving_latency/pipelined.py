"""The search that the method `exact` performs for the pipelined mechanism. It combines lower
bounds, incumbents and enumeration.

For conservative output lengths, some optimal plan has contiguous batches, but their pipeline order
is free. For every speculation length l and number of batches M, the search

1. discards pairs (l, M) by bounds on the work of each stage (see `bound`), then by bounds that
   treat the first and the last batch separately;
2. raises a Lagrangian bound over pipeline positions. The bound is the length of a shortest path
   over states (prefix, occupied positions), as described in
   `specopt.solvers.serving_latency.kernels.bounds`. Every path is a plan, which is evaluated
   exactly. The first paths distinguish a few of the first and last positions and pool the
   positions between them. If there are many blocks, the paths run over cells of tasks
   (`specopt.solvers.serving_latency.blocks`). The lowest bound is refined with more positions and
   finer cells. Simulated annealing improves the best plan for each of a few numbers of batches;
3. enumerates the remaining plans. The outer enumeration divides the sorted tasks into blocks and
   assigns blocks to the distinguished positions (`specopt.solvers.serving_latency.positions`). The
   inner enumeration tries all orders of the pooled blocks
   (`specopt.solvers.serving_latency.kernels.orders`). Branches whose bounds reach the incumbent are
   pruned. The enumeration is abandoned if it takes much longer than computing the bound did,
   because another distinguished position then prunes more.

If step 3 finishes, the incumbent is proven optimal. For very few tasks, every plan is evaluated,
which compiles only one kernel. Numbers of batches above `LARGEST_APART` are bounded and enumerated
together. A certified gap remains if there are so many tasks that the shortest paths over all blocks
would be too large to compute.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.blocks import (
    RANGES,
    Tables,
    coarsened,
    range_starts,
    scenario_tables,
    widths,
)
from specopt.solvers.serving_latency.contiguous import additive_batches, algorithm_1_batches
from specopt.solvers.serving_latency.positions import (
    ENTRIES_PER_NODE,
    Enumeration,
    Path,
    PathBound,
    Positions,
)
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import stages
from specopt.solvers.simulation import random_key

LARGEST_APART = 12
# relative gain that counts as no improvement; below the 1e-9 within which a result is optimal
TOLERANCE = 4e-10
# These values determine the order and the length of attempts: they affect the time of a proof, and
# the gap if time runs out.
_ROUNDS = 80  # evaluations of the Lagrangian bound per part
_NODES = 20_000  # enumeration nodes per kernel call, and before other weights are considered
# minimum work of an enumeration before it is abandoned, in entries of shortest paths
_PATIENCE = 60_000_000
_FINE_RANGES = 64  # of decoding steps, for bounds on orders
# fraction of the gap; a part is enumerated if its last refinement raised its bound by less
_SLOW = 0.2
_NEAR = 0.004  # largest relative gap for enumeration; a larger gap leaves too much
_LEAVES = 2048  # leaves per kernel call
_PATH = 3_000_000  # size of the shortest paths that first bound a part, coarsely
_CERTIFIED = 50_000_000  # the same if no plan is needed
_LONGEST_PATH = 3_000_000_000  # the same at the end
_FEWEST_CELLS = 48  # in coarse shortest paths
_WIDE = 64  # mean number of tasks in the widest blocks above which paths may be coarse
_FIRST_POSITIONS = 4  # initial number of special positions of pooled parts
_MASKS = 300_000_000  # size of the shortest paths that bound enumerated parts
_CHEAP = 30_000_000  # entries up to which every number of batches is bounded separately
_PLANS = 1500  # with affine runtimes, all plans are rated up to this many with tasks alone
# for tables of runtimes with several pieces and shortest paths over them, roughly
_BYTES_PER_ENTRY = 200
_SECONDS_PER_ENTRY = 3e-7  # to fill the tables, roughly
_TRIES_PER_BLOCK = 1000  # tries of one annealing, per block of the plan
_TRIES = 20_000_000  # the same at most, divided by the number of blocks and of columns of runtimes
_HEAT = 0.03  # relative worsening at the start of annealing, divided by the number of blocks
# work on the bound of a part, and on the nodes of all parts, up to which an enumeration is tried
# first; annealing follows if it is abandoned, because its kernel takes a few seconds to compile
_QUICK = 10_000_000
_WORK_PER_TASK = 1_000_000  # entries of shortest paths between two annealings, per task
_SECONDS_PER_TRY = 8e-8  # per try of the annealing and block
_SECONDS_PER_BLOCK = 3e-9  # per node of the orders and scenario
_SECONDS_PER_SORT = 2e-7  # per block and range of steps, to sort the blocks in advance


@dataclass
class Part:
    """A subproblem of the search: all plans with one speculation length and one number of batches,
    together with a lower bound on their inference time T_inf.
    """

    bound: float
    length: int
    batches: int
    more: bool = False  # whether the part also represents larger numbers of batches
    # by scenario, the best weight of the first position if only the first and the last have weights
    first_weight: Floats = field(default_factory=lambda: np.full(RANGES + 1, 0.5))
    # number of special positions, which have weights: at the front, and in total
    front: int = field(init=False)
    specials: int = field(init=False)
    weights: Floats = field(init=False)  # weights of the bound
    effort: float = field(default_factory=lambda: _PATH)  # size of the shortest paths for the bound
    work: float = 0.0  # work spent on raising the bound so far, in entries of shortest paths
    refined: float = 0.0  # bound at the last refinement

    def __post_init__(self) -> None:
        self.specials = min(_FIRST_POSITIONS, self.batches)
        self.front = (self.specials + 1) // 2
        self.weights = np.zeros((RANGES + 1, self.specials))
        self.weights[:, 0] += self.first_weight
        self.weights[:, -1] += 1.0 - self.first_weight

    def positions(self, another: bool = False) -> Positions:
        """Return the pipeline positions that this part's bound distinguishes. If `another` is true,
        include one more special position.
        """
        specials = self.specials + another
        return Positions(
            self.front, specials, 0 if self.more else self.batches - specials, self.more
        )

    def places(self, positions: Ints) -> Floats:
        """Return sort keys that order blocks by pipeline position. All blocks in the pool have the
        same key.
        """
        return np.where(positions == self.specials, self.front - 0.5, positions)


def _johnson(draft: Floats, verify: Floats, places: Floats) -> Ints:
    """Return the order of blocks sorted by the keys in `places`. Blocks with equal keys are ordered
    by Johnson's rule.

    According to this rule, blocks that draft faster than they verify come first, in order of
    increasing draft time. The other blocks follow in order of decreasing verify time.
    """
    faster = draft < verify
    key = np.where(faster, draft, -verify)
    return np.lexsort((key, ~faster, np.broadcast_to(places, key.shape)))


class PipelinedSearch:
    """Branch and bound over speculation lengths, numbers of batches, partitions into blocks, and
    pipeline orders.

    `floor` is a lower bound on the objective under the problem's other mechanisms. It is infinite
    if there are no other mechanisms.
    """

    def __init__(self, prepared: Prepared, budget: Budget, floor: float = math.inf) -> None:
        self.prepared = prepared
        self.budget = budget
        self.floor = floor
        self.plans = budget.load("serving_latency.plans")
        self.bounds = budget.load("serving_latency.bounds")
        self.annealing = budget.load("serving_latency.annealing")
        self.kernels = budget.load("serving_latency.orders")
        self.columns = budget.load("serving_latency.column_bound")
        self.width = widths(prepared)
        self.best = (
            math.inf
            if budget.objective is None
            else budget.objective - prepared.communication_seconds
        )
        self.rating = True  # whether paths are rated as plans
        # by speculation length and number of blocks, the best plan's inference time and the ends of
        # its blocks in pipeline order
        self.found: dict[tuple[int, int], tuple[float, Ints]] = {}
        self.open: list[Part] = []
        self.left: list[Part] = []  # parts that stay open at the end
        self.dropped = math.inf  # bound on the plans of all closed parts
        # cells round sizes up, which costs more than it saves if few tasks fit
        self.coarse = prepared.linear and self._entries >= _WIDE * prepared.tasks
        self.tables: dict[tuple[int, int], Tables] = {}
        self.stream = np.array([random_key(budget.seed)])
        self.stats: dict[str, Any] = {"parts": 0, "lagrangian_rounds": 0, "nodes": 0}

    @property
    def cut(self) -> float:
        """Inference time T_inf, in seconds, that a plan must undercut to be a sufficient
        improvement on the incumbent.
        """
        return self.best - max(self.budget.gap, TOLERANCE) * (
            self.best + self.prepared.communication_seconds
        )

    @property
    def bound(self) -> float:
        """Valid lower bound on the total latency of all plans under this mechanism, in seconds."""
        communication = self.prepared.communication_seconds
        unimproved = self.best - TOLERANCE * (self.best + communication)
        parts = (part.bound for part in self.open + self.left)
        return min(unimproved, self.dropped, *parts) + communication

    def run(self) -> float:
        """Search until optimality is proven, the gap is reached, or the only open parts are too
        large to close.

        Return a lower bound on the total latency in seconds.
        """
        alone = math.factorial(min(self.prepared.tasks, 8)) * len(self.prepared.lengths)
        if self.prepared.linear and alone <= _PLANS:
            self._rate_every_plan()
            return self.bound
        self._start()
        for part in sorted(self.open, key=lambda p: p.bound):
            if part.bound < self.cut:
                self.stats["parts"] += 1
                self._ascend(part)
        while self._prune():
            part = min(self.open, key=lambda p: p.bound)
            coarse = self._cells(part) > 0
            patience = max(_PATIENCE, 6.0 * part.work)
            # a part stays open, and its bound counts, until the part is closed
            gap = self.cut - part.bound
            slow = part.bound - part.refined < _SLOW * gap and gap < _NEAR * self.cut
            if slow and not coarse and self._enumerate(part, patience):
                self._drop(part)
            elif self._refine(part):
                self._ascend(part)
            elif coarse:
                self.left.append(part)
                self.open.remove(part)
            elif not slow and self._enumerate(part, patience):
                self._drop(part)
            else:
                part.work += patience
                self._improve(patience)
            self._report()
        return self.bound

    def certify(self) -> float:
        """Return a lower bound, in seconds, on the total latency under this mechanism, without
        searching for plans.

        The lowest bound of any part is raised until no further refinement is affordable.
        """
        self.rating = False
        self._start()
        while self._prune():
            part = min(self.open, key=lambda p: p.bound)
            if part.work > 0.0 and not (self._refine(part) and part.effort <= _CERTIFIED):
                break
            self._ascend(part)
        return self.bound

    def _prune(self) -> bool:
        """Close the parts whose bound has reached the incumbent. Return whether any open parts
        remain.
        """
        for part in [part for part in self.open if part.bound >= self.cut]:
            self._drop(part)
        return bool(self.open)

    def _drop(self, part: Part) -> None:
        """Close a part whose bound has reached the incumbent or whose plans are all enumerated."""
        self.open.remove(part)
        self.dropped = min(self.dropped, max(part.bound, self.cut))

    def _report(self) -> None:
        """Report the bound to the budget, which ends the search if a stop was requested or time has
        run out.
        """
        self.budget.improve_bound(min(self.bound, self.floor))
        self.budget.check()

    # ------------------------------------------------------------------ where to start

    def _start(self) -> None:
        """Evaluate Algorithm 1's plans, and list the parts that initial bounds do not rule out."""
        prepared, budget = self.prepared, self.budget
        self.open = [Part(0.0, length, 1, more=True) for length in prepared.lengths]
        for part in list(self.open):
            self._report()
            self._bound_stages(part)
            if part.bound >= self.cut or not self.rating:
                continue
            if not prepared.tabled:
                batches = algorithm_1_batches(prepared, part.length, budget)[0]
            else:  # completion times are not convex
                batches = additive_batches(stages(prepared, part.length), (0.5, 0.5), budget)[0]
            if batches is not None:
                ends = np.array([batch[-1] + 1 for batch in batches])
                self._rate(part.length, ends, np.diff(ends, prepend=0))
        self._split_open()
        self._report()

    def _bound_stages(self, part: Part) -> None:
        """Bound a part by the total time of each stage alone, since T_n >= sum_m T^d and T_n >=
        sum_m T^v (Eq. 20).
        """
        for weights in ((1.0, 0.0), (0.0, 1.0)):
            if part.bound < self.cut:
                at = stages(self.prepared, part.length)
                seconds = additive_batches(at, weights, self.budget)[1]
                part.bound = max(part.bound, seconds)

    def _split_open(self) -> None:
        """Split each open part into one part for each number of batches, and bound each of them
        separately.
        """
        self._prune()
        parts = []
        for part in self.open:
            self.budget.check()
            parts += self._split(part)
        self.open = parts
        self._prune()

    def _split(self, part: Part) -> list[Part]:
        """Split a part into one part for each number of batches. Their bounds use weights on the
        first and the last position only.
        """
        cap = self._largest_apart + 1
        bounds = np.full(cap + 1, part.bound)
        bounds[: max(1, min(self._fewest_batches(), cap))] = math.inf
        first = np.full((cap + 1, RANGES + 1), 0.5)
        if self._entries * cap <= _CHEAP:
            tables, pace = self._tables(part.length), self.budget.pace()
            value = np.empty((self.prepared.tasks + 1, 4, cap + 1))
            costs = self.bounds.Costs(*tables.arrays)
            for weights in itertools.product((0.0, 0.5, 1.0), (0.0, 0.3, 0.5, 0.7, 1.0)):
                pace()
                weight = np.repeat(weights, (1, RANGES))
                before = bounds.copy()
                self.bounds.ends_bound(costs, weight, value, bounds)
                first[bounds > before] = weight
        if self.prepared.tasks < cap:
            bounds[cap] = math.inf
        return [
            Part(float(bounds[m]), part.length, m, more=m == cap, first_weight=first[m])
            for m in range(1, cap + 1)
            if bounds[m] < math.inf
        ]

    @property
    def _largest_apart(self) -> int:
        """Largest number of batches M for which there is a separate part. It is limited because the
        shortest path runs over 2^M sets of occupied positions.
        """
        fitting = (
            m
            for m in range(LARGEST_APART, 1, -1)
            if self.coarse or self._entries * m * 2**m <= _MASKS
        )
        return min(next(fitting, 1), self.prepared.tasks)

    @property
    def _entries(self) -> int:
        """Number of blocks that fit in memory."""
        return int(self.width.sum())

    def _fewest_batches(self) -> int:
        """Return the smallest number of batches with which all tasks fit in memory.

        It is attained if batches are as large as possible, starting from the longest input.
        """
        count, end = 0, self.prepared.tasks
        while end > 0:
            end -= int(self.width[end])
            count += 1
        return count

    def _tables(self, length: int, cells: int = 0) -> Tables:
        """Return the cost tables for one speculation length, which are built on first use.

        The tables cover all blocks. If `cells` is positive and coarser tables can be built, they
        cover only blocks that consist of whole cells, where `cells` is the number of cells.
        """
        if (length, cells) not in self.tables:
            if cells:
                found = coarsened(self._tables(length), cells)
            else:
                at = stages(self.prepared, length)
                if not at.linear:
                    self._hold_tables()
                found = scenario_tables(at, self.width, self.bounds)
            self.tables[length, cells] = found or self._tables(length)
        return self.tables[length, cells]

    def _hold_tables(self) -> None:
        """Ensure that memory and time suffice for the tables of one more speculation length. Older
        tables are discarded if memory runs short.
        """
        entries = float(self.width.max() + 1) * len(self.width)
        self.budget.hold(
            "input_tokens (pairs of tasks that may share a batch)", _BYTES_PER_ENTRY * entries
        )
        if (len(self.tables) + 1) * _BYTES_PER_ENTRY * entries > self.budget.memory_limit:
            self.tables.clear()
        self.budget.check(_SECONDS_PER_ENTRY * self._entries)

    def _cells(self, part: Part) -> int:
        """Return the number of cells to use in a part's shortest path, as allowed by the part's
        effort. 0 means that the path considers all blocks.
        """
        size = self._entries * part.positions().steps
        if size <= part.effort or not self.coarse:
            return 0
        cells = max(_FEWEST_CELLS, int(self.prepared.tasks * math.sqrt(part.effort / size)))
        return cells if cells < self.prepared.tasks else 0

    # ------------------------------------------------------------------ incumbents

    def _rate(self, length: int, ends: Ints, sizes: Ints) -> float:
        """Return the inference time T_inf, in seconds, for blocks in pipeline order. Keep the plan
        if it improves on the incumbent.
        """
        return float(self._rate_all(length, ends[None, :], sizes[None, :])[0])

    def _rate_all(self, length: int, ends: Ints, sizes: Ints) -> Floats:
        """Return the inference time T_inf, in seconds, of several sequences with the same number of
        blocks. Keep the best sequence as a plan if it improves on the incumbent.
        """
        count, blocks = ends.shape
        out = np.empty(count)
        self.plans.sequences_seconds(
            count,
            blocks,
            stages(self.prepared, length).data,
            np.ascontiguousarray(ends),
            np.ascontiguousarray(sizes),
            out,
        )
        k = int(np.argmin(out))
        seconds, key = float(out[k]), (length, blocks)
        if key not in self.found or seconds < self.found[key][0]:
            self.found[key] = seconds, ends[k]
        if seconds < self.best * (1 - 1e-13):
            self.best = seconds
            pairs = zip(ends[k], sizes[k], strict=True)
            batches = [np.arange(end - size, end) for end, size in pairs]
            self.budget.offer(self.prepared.plan(batches, length))
        return out

    def _improve(self, work: float) -> None:
        """Improve the best plan, and the plans with one block fewer and one block more, by
        simulated annealing.

        The number of runs grows with the work spent on a bound. Successive runs start at three
        different temperatures.
        """
        runs = 1 + int(work / (_WORK_PER_TASK * self.prepared.tasks))
        for run, more in itertools.product(range(runs), (-1, 0, 1)):
            length, best = min(self.found, key=lambda key: self.found[key][0])
            count = best + more
            if (length, count) in self.found:
                data, ends = stages(self.prepared, length).data, self.found[length, count][1]
                most = _TRIES // (count * data.runtimes.shape[-1])
                tries, heat = min(_TRIES_PER_BLOCK * count, most), _HEAT * 0.3 ** (run % 3) / count
                plan = np.stack([np.sort(ends), np.argsort(np.argsort(ends))])
                self.annealing.improve_blocks(tries, data, self.width, heat, plan, self.stream)
                ends, order = plan
                self._rate(length, ends[order], np.diff(ends, prepend=0)[order])
                self.budget.spend(tries * count * _SECONDS_PER_TRY)
                self.budget.check()

    def _rate_every_plan(self) -> None:
        """Evaluate every plan: every partition into contiguous blocks in every pipeline order, at
        every speculation length.
        """
        tasks = self.prepared.tasks
        for blocks in range(1, tasks + 1):
            cuts = np.array(
                [(*cut, tasks) for cut in itertools.combinations(range(1, tasks), blocks - 1)]
            )
            sizes = np.diff(cuts, prepend=0)
            fitting = (sizes <= self.width[cuts]).all(axis=1)
            orders = np.array(list(itertools.permutations(range(blocks))))
            ends, sizes = (part[fitting][:, orders].reshape(-1, blocks) for part in (cuts, sizes))
            if len(ends):
                for length in self.prepared.lengths:
                    self._rate_all(length, ends, sizes)
                    self.budget.check()

    # ------------------------------------------------------------------ Lagrangian bound

    def _refine(self, part: Part) -> bool:
        """Refine a part by adding a special position or by using finer cells, which allows its
        bound to be raised again.

        The position is added on the side where the innermost special position has the larger
        weight. Return whether a refinement was possible.
        """
        gained, part.refined = part.bound > part.refined, part.bound
        cells = self._cells(part)
        while True:
            if part.specials < part.batches and (gained or cells == 0):
                part_of_cells = _FEWEST_CELLS / self.prepared.tasks if self.coarse else 1.0
                fewest = self._entries * part_of_cells**2
                if fewest * part.positions(another=True).steps <= part.effort:
                    before = part.weights[:, : part.front].sum(axis=0)
                    behind = part.weights[:, part.front :].sum(axis=0)
                    part.weights = np.insert(part.weights, part.front, 0.0, axis=1)
                    part.front += int(before[-1:].sum() > behind[:1].sum())
                    part.specials += 1
                    return True
            elif cells == 0:
                return False
            if part.effort >= _LONGEST_PATH:
                return False
            part.effort *= 4
            gained = True
            if self._cells(part) != cells:
                part.refined = 0.0
                return True

    def _ascend(self, part: Part) -> None:
        """Raise a part's bound by cutting planes, until it reaches the incumbent or stops
        increasing. Evaluate the plan of every path found on the way.
        """
        from specopt.solvers.serving_latency.cutting_planes import CuttingPlanes

        tables, weights = self._tables(part.length, self._cells(part)), part.weights
        planes = CuttingPlanes(weights, self.best)
        paths = PathBound(tables, part.positions(), self.budget)
        for _ in range(_ROUNDS):
            value, path, gradient = paths.evaluate(weights)
            self.stats["lagrangian_rounds"] += 1
            if value > part.bound:
                part.bound, part.weights = value, weights
            if part.bound >= self.cut:
                return
            if self.rating:
                self._rate_path(part, tables, path)
            self._report()
            planes.learn(weights, value, gradient)
            proposal = planes.propose()
            if proposal is None:
                break
            weights = proposal
        part.work += paths.work
        if self.found and (
            part.more or part.work + ENTRIES_PER_NODE * self.stats["nodes"] > _QUICK
        ):
            self._improve(paths.work)

    def _rate_path(self, part: Part, tables: Tables, path: Path) -> None:
        """Evaluate the plan of a shortest path. Pooled blocks run between the special blocks, in
        the order of Johnson's rule.
        """
        ends, sizes, positions = path
        draft, verify = tables.times(ends, sizes)
        order = _johnson(draft, verify, part.places(positions))
        if tables.cell != 1.0:
            ends = np.rint(ends * tables.cell).astype(np.int64)
            sizes = np.diff(ends, prepend=0)
            if (sizes > self.width[ends]).any():
                return
        order = order[sizes[order] > 0]
        self._rate(part.length, ends[order], sizes[order])

    # ------------------------------------------------------------------ enumeration

    def _try_orders(self, part: Part, path: Path, nodes: float) -> tuple[int, bool]:
        """Try all pipeline orders of a path's blocks, except those that Johnson bounds rule out.

        Give up after `nodes` nodes. Return a tuple (nodes, complete): the number of nodes visited,
        and whether the enumeration is complete.
        """
        at, count = stages(self.prepared, part.length), path.shape[1]
        starts = range_starts(int(at.steps[0]), _FINE_RANGES)
        ranges, place = len(starts) - 1, part.places(path[2])
        times = np.empty((count, 4, ranges))
        self.columns.batch_stages(at.data, path[1], path[0] - 1, at.steps, starts - 1, times)
        times = np.ascontiguousarray(times[:, :2].transpose(1, 2, 0))
        state, leaves = np.zeros(2, int), np.zeros((_LEAVES, count), np.int64)
        orders = self.kernels.Orders(
            times,
            place,
            _johnson(times[0], times[1], place),
            np.ones(count, bool),
            np.zeros(count + 1, int),
            np.zeros((count + 1, 2, ranges)),
            state,
        )
        pairs = ranges * count
        self.budget.spend(pairs * _SECONDS_PER_SORT)
        while state[0] >= 0 and state[1] < nodes:
            before = state[1]
            found = self.kernels.enumerate_orders(_NODES, self.cut, orders, leaves)
            self.budget.spend(float(pairs * (state[1] - before) * _SECONDS_PER_BLOCK))
            if found:
                ends, sizes, _ = path[:, leaves[:found]]
                self._rate_all(part.length, ends, sizes)
            self._report()
        self.stats["nodes"] += int(state[1])
        return int(state[1]), bool(state[0] < 0)

    def _enumerate(self, part: Part, patience: float) -> bool:
        """Enumerate all plans of a part, except those that bounds rule out.

        Return whether the enumeration finished before its work exceeded `patience`.
        """
        tables = self._tables(part.length)
        search = Enumeration(PathBound(tables, part.positions(), self.budget), part.weights)
        ordering, allowance, complete = 0.0, patience, True
        while not search.done and search.work + ordering <= patience:
            before = self.best
            for path in search.advance(_NODES, self.cut):
                self._rate_path(part, tables, path)
                if (path[2] == part.specials).sum() > 1:
                    nodes = (patience - search.work - ordering) / ENTRIES_PER_NODE
                    taken, ended = self._try_orders(part, path, nodes)
                    ordering += ENTRIES_PER_NODE * taken
                    complete &= ended
            if self.best < before:  # fewer plans are left than it seemed, and a restart loses work
                patience = 2.0 * (search.work + ordering) + allowance
            self._report()
            if not search.done:
                search.sharpen(self.cut)
        self.stats["nodes"] += search.nodes
        return complete and search.done and search.work + ordering <= patience
