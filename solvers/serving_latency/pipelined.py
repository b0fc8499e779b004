"""The search behind `exact` for the pipelined mechanism: bounds, incumbents and enumeration.

For conservative output lengths contiguous batches lose nothing, but their pipeline order is free. For every
speculation length l and number of batches M the search

1. discards (l, M) by bounds: each stage's own work (`bound`), then first and last batch singled out;
2. raises a Lagrangian bound over pipeline positions, a shortest path over (prefix, occupied positions), see
   `specopt.solvers._kernels.serving_latency.bounds`; every path is a plan, rated exactly. The first paths keep a few
   of the first and last positions apart and pool those between, and where blocks are many run over cells of tasks
   (`specopt.solvers.serving_latency.blocks`); the least bound of all is refined by more positions and finer cells;
3. enumerates what is left: all ways to cut and order M blocks whose bound stays below the incumbent.

Step 3 is a proof. Few tasks skip step 2 (`specopt.solvers._kernels.serving_latency.cuts`). Numbers of batches beyond
`LARGEST_ENUMERATED` are bounded together, and apart once that bound gains no more. Where the paths would become too
large a gap remains: certified, not closed.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specopt.models.errors import OutOfTime
from specopt.models.fields import Floats, Ints
from specopt.models.serving_latency import ServingLatencyPlan
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.blocks import RANGES, Tables, coarsened, scenario_tables, widths
from specopt.solvers.serving_latency.contiguous import additive_batches, algorithm_1_batches
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import stages, workspace
from specopt.solvers.simulation import random_key

LARGEST_ENUMERATED = 12
TOLERANCE = 4e-10  # what counts as no improvement; below the 1e-9 within which a result is optimal
_ROUNDS = 80  # evaluations of the Lagrangian bound per part
_SECONDS_PER_ENTRY = 1.5e-9  # of a shortest path, roughly
_NODES = 50000  # enumeration nodes per kernel call
_PATIENCE = 100000  # enumeration nodes before a part is split
_LEAVES = 2048  # leaves per kernel call
_PATH = 3_000_000  # size of the shortest paths that bound a part first, coarsely
_CERTIFIED = 50_000_000  # and where no plan is looked for
_LONGEST_PATH = 3_000_000_000  # and at last
_FEWEST_CELLS = 48  # of coarse shortest paths
_WIDE = 64  # tasks that the widest blocks hold in the mean where paths may be coarse
_FIRST_POSITIONS = 4  # special ones of pooled parts, to begin with
_MASKS = 300_000_000  # size of the shortest paths that bound enumerated parts
_CHEAP = 30_000_000  # entries up to which every number of batches is bounded apart
_MOST_CUT = 16  # tasks that are cut in every way
_CUTS = 2048  # ways to cut per kernel call
_FEW = 20_000  # orders and cuts that are enumerated sooner than bounded well


@dataclass(frozen=True)
class Path:
    """A plan met as a shortest path: blocks in sorted order with their positions, and Phi_q by scenario."""

    ends: Ints
    sizes: Ints
    positions: Ints
    gradient: Floats


@dataclass
class Part:
    """The plans with one speculation length and one number of batches, and a bound on their T_inf.

    Parameters
    ----------
    bound
        Lower bound on T_inf of the part's plans.
    length, batches
        Speculation length and number of batches.
    more
        Whether it stands for more batches, too.
    first_weight
        By scenario, the best weight of the first position where only the first and the last have any.
    limits
        By special position: least and largest size, least and largest end of the block there.
    front, specials
        How many positions are special at the front, and in all: those that weights are for.
    weights, paths, mixture
        Once the bound was raised: its Lagrangian weights, the paths met, and how they mix in the dual.
    enumerated
        Whether only enumeration, to the end, is left to do.
    effort
        Size of the shortest paths that bound it.
    refined
        The bound before it was refined last.
    """

    bound: float
    length: int
    batches: int
    more: bool = False
    first_weight: Floats = field(default_factory=lambda: np.full(RANGES + 1, 0.5))
    front: int = 0
    specials: int = 0
    limits: Ints | None = None
    weights: Floats | None = None
    paths: list[Path] = field(default_factory=list)
    mixture: Floats | None = None
    enumerated: bool = False
    effort: float = field(default_factory=lambda: _PATH)
    refined: float = 0.0

    def __post_init__(self) -> None:
        if self.weights is None:
            self.specials = min(_FIRST_POSITIONS, self.batches)
            self.front = (self.specials + 1) // 2

    @property
    def pool(self) -> int:
        """Number of batches between the special positions, where it is counted."""
        return 0 if self.more else self.batches - self.specials

    def steps(self, specials: int) -> int:
        """Return the steps of a shortest path per block: the states with so many special positions, times positions."""
        return (1 if self.more else self.batches - specials + 1) * (specials + 1) << specials

    def allows(self, path: Path) -> bool:
        """Tell whether a path keeps the limits."""
        assert self.limits is not None
        low_size, high_size, low_end, high_end = self.limits[path.positions].T
        sizes, ends = path.sizes, path.ends
        return bool(((low_size <= sizes) & (sizes <= high_size) & (low_end <= ends) & (ends <= high_end)).all())


class PipelinedSearch:
    """Branch and bound over speculation lengths, numbers of batches, cuts and pipeline orders.

    Parameters
    ----------
    prepared
        The problem under the pipelined mechanism, conservative output lengths.
    budget
        Clock, incumbent, gap.
    floor
        Bound on the objective of the problem's other mechanisms; infinite if there are none.
    """

    def __init__(self, prepared: Prepared, budget: Budget, floor: float = math.inf) -> None:
        self.prepared = prepared
        self.budget = budget
        self.floor = floor
        self.plans = budget.load("serving_latency.plans")
        self.bounds = budget.load("serving_latency.bounds")
        self.annealing = budget.load("serving_latency.annealing")
        self.width = widths(prepared)
        self.work = workspace(self.plans, prepared.tasks)
        self.best = math.inf if budget.objective is None else budget.objective - prepared.communication_seconds
        self.plan: ServingLatencyPlan | None = None
        self.small = all(_orders(prepared.tasks, m) <= _FEW for m in range(1, prepared.tasks + 1))
        self.rating = True  # whether paths are rated as plans
        self.open: list[Part] = []
        self.left: list[Part] = []  # parts that stay open at the end
        # cells round what fits up, and that costs more than they save where few tasks fit
        self.coarse = prepared.runtimes.shape[1] == 1 and self._entries >= _WIDE * prepared.tasks
        self.tables: dict[tuple[int, int], Tables] = {}
        self.stream = np.array([random_key(budget.seed)])
        self.stats: dict[str, Any] = {"parts": 0, "lagrangian_rounds": 0, "nodes": 0}

    @property
    def cut(self) -> float:
        """T_inf from which on a plan is no worthwhile improvement."""
        return self.best - max(self.budget.gap, TOLERANCE) * (self.best + self.prepared.communication_seconds)

    @property
    def bound(self) -> float:
        """Valid bound on the objective over all plans of this mechanism."""
        inference = min([self.cut, *(part.bound for part in self.open + self.left)])
        return inference + self.prepared.communication_seconds

    def run(self) -> float:
        """Search until all is proven, the gap is reached or only pooled parts are left; return the bound."""
        self._start()
        if self.prepared.tasks <= _MOST_CUT and not self.small:
            self._cut()
        for part in sorted(self.open, key=lambda p: p.bound):
            if part.bound < self.cut:
                self.stats["parts"] += 1
                self._ascend(part)
                if part.bound < self.cut and not self.small:
                    self._polish()
        while self._prune():
            part = min(self.open, key=lambda p: p.bound)
            # a part stays open, and its bound counts, until it is closed or all that replaces it is open
            if self._refine(part):
                self._ascend(part)
            elif part.specials < part.batches or self._cells(part) > 0:
                self.left.append(part)
                self.open.remove(part)
            elif not part.more and self._enumerate(part):
                self.open.remove(part)
            else:
                self.open += (children := self._next_number(part) if part.more else self._halves(part))
                self.open.remove(part)
                for child in children:
                    if child.bound < self.cut:
                        self._ascend(child)
            self._report()
        return self.bound

    def certify(self) -> float:
        """Return the bound of the whole mechanism without looking for plans: raise the least part's until it stays."""
        self.rating = False
        self.open = [Part(0.0, length, 1, more=True) for length in self.prepared.lengths]
        for part in self.open:
            self._bound_stages(part)
        self.open = [child for part in self.open if part.bound < self.cut for child in self._split(part)]
        while self._prune():
            part = min(self.open, key=lambda p: p.bound)
            if part.weights is not None and not (self._refine(part) and part.effort <= _CERTIFIED):
                break
            self._ascend(part)
        return self.bound

    def _prune(self) -> bool:
        """Drop the parts whose bound has reached the incumbent; tell whether any are left."""
        self.open = [part for part in self.open if part.bound < self.cut]
        return bool(self.open)

    def _report(self) -> None:
        """Pass the bound on, and stop if asked or out of time."""
        self.budget.improve_bound(min(self.bound, self.floor))
        self.budget.check()

    # ------------------------------------------------------------------ where to start

    def _start(self) -> None:
        """Rate Algorithm 1's plans, improve the best ones, and list the parts that the first bounds leave."""
        prepared, budget = self.prepared, self.budget
        self.open = [Part(0.0, length, 1, more=True) for length in prepared.lengths]
        started: list[tuple[float, int, Ints, Ints]] = []
        for part in list(self.open):
            self._report()
            self._bound_stages(part)
            if part.bound >= self.cut or self.small:
                continue
            batches, _ = algorithm_1_batches(prepared, part.length, budget)
            if batches is not None:
                ends = np.array([batch[-1] + 1 for batch in batches])
                sizes = np.array([len(batch) for batch in batches])
                started.append((self._rate(part.length, ends, sizes), part.length, ends, sizes))
        started.sort(key=lambda item: item[0])
        for _, length, ends, sizes in started[:3]:
            self._anneal(length, ends, sizes)
        parts = []
        for part in self.open:
            if part.bound < self.cut:
                budget.check()
                parts += self._split(part)
        self.open = parts
        self._report()

    def _bound_stages(self, part: Part) -> None:
        """Bound a part by the work of each stage alone: T_n >= sum_m T^d and T_n >= sum_m T^v (Eq. 20)."""
        for weights in ((1.0, 0.0), (0.0, 1.0)):
            if part.bound < self.cut:
                seconds = additive_batches(self.prepared, part.length, *weights, self.budget)[1]
                part.bound = max(part.bound, seconds)

    def _split(self, part: Part) -> list[Part]:
        """Bound every number of batches apart, by weights on the first and the last position alone."""
        cap = self._largest_enumerated + 1
        bounds = np.full(cap + 1, part.bound)
        bounds[: max(1, min(self._fewest_batches(), cap))] = math.inf
        first = np.full((cap + 1, RANGES + 1), 0.5)
        if self._entries * cap <= _CHEAP:
            tables = self._tables(part.length)
            value = np.empty((self.prepared.tasks + 1, 4, cap + 1))
            for prefill in (0.0, 0.5, 1.0):
                for decode in (0.0, 0.3, 0.5, 0.7, 1.0):
                    weight = np.full(len(tables.d), decode)
                    weight[0] = prefill
                    before = bounds.copy()
                    self.bounds.ends_bound(*tables.arrays, tables.least, weight, value, bounds)
                    first[bounds > before] = weight
        if self.prepared.tasks < cap:
            bounds[cap] = math.inf
        return [
            Part(float(bounds[m]), part.length, m, more=m == cap, first_weight=first[m])
            for m in range(1, cap + 1)
            if bounds[m] < self.cut
        ]

    @property
    def _largest_enumerated(self) -> int:
        """Largest number of batches whose plans are enumerated: what the shortest path over 2^M masks allows."""
        fitting = (m for m in range(LARGEST_ENUMERATED, 1, -1) if self.coarse or self._entries * m * 2**m <= _MASKS)
        return min(next(fitting, 1), self.prepared.tasks)

    @property
    def _entries(self) -> int:
        """Number of blocks that fit the memory."""
        return int(self.width.sum())

    def _fewest_batches(self) -> int:
        """Return the least number of batches that fit (as large as possible from the longest input down)."""
        count, end = 0, self.prepared.tasks
        while end > 0:
            end -= int(self.width[end])
            count += 1
        return count

    def _tables(self, length: int, cells: int = 0) -> Tables:
        """Return the tables of one speculation length: of all blocks, or where possible over so many cells."""
        if (length, cells) not in self.tables:
            if cells:
                found = coarsened(self._tables(length), cells)
            else:
                found = scenario_tables(stages(self.prepared, length), self.width, self.bounds)
            self.tables[length, cells] = found or self._tables(length)
        return self.tables[length, cells]

    def _cells(self, part: Part) -> int:
        """Return how coarse the part's effort lets its shortest path be; 0 for all blocks."""
        size = self._entries * part.steps(part.specials)
        if size <= part.effort or not self.coarse:
            return 0
        cells = max(_FEWEST_CELLS, int(self.prepared.tasks * math.sqrt(part.effort / size)))
        return cells if cells < self.prepared.tasks else 0

    # ------------------------------------------------------------------ incumbents

    def _rate(self, length: int, ends: Ints, sizes: Ints) -> float:
        """Return T_inf of blocks in pipeline order, and keep the plan if it is the best so far."""
        out = np.empty(1)
        self._rate_all(length, ends[None, :], sizes[None, :], out)
        return float(out[0])

    def _rate_all(self, length: int, ends: Ints, sizes: Ints, out: Floats) -> None:
        """Fill T_inf of several sequences of the same number of blocks, and keep the best if it improves."""
        count, blocks = ends.shape
        self.plans.sequences_seconds(
            count, blocks, *stages(self.prepared, length).arrays, np.ascontiguousarray(ends),
            np.ascontiguousarray(sizes), *self.work, out,
        )  # fmt: skip
        k = int(np.argmin(out))
        if out[k] < self.best * (1 - 1e-13):
            batches = [list(range(end - size, end)) for end, size in zip(ends[k], sizes[k], strict=True)]
            plan = self.prepared.plan(batches, length)
            self.best = float(out[k])
            self.plan = plan
            self.budget.offer(plan)

    def _improve(self, length: int, ends: Ints, sizes: Ints, tries: int = 2000, heat: float = 0.0) -> float:
        """Run the local search from blocks in pipeline order while it helps; return the T_inf reached."""
        tasks = self.prepared.tasks
        at = stages(self.prepared, length)
        blocks = np.zeros((6, tasks), dtype=np.int64)
        blocks[:2, : len(ends)] = ends, sizes
        count = np.array([len(ends)])
        seconds = np.array([self._rate(length, ends, sizes)])
        while True:
            before = float(seconds[0])
            self.annealing.improve_sequence(tries, *at.arrays, heat, *self.work, blocks, count, seconds, self.stream)
            self._rate(length, *blocks[:2, : count[0]])
            self.budget.check()
            if seconds[0] > before * (1 - 1e-4):
                return float(seconds[0])

    def _anneal(self, length: int, ends: Ints, sizes: Ints) -> None:
        """Run the local search by threshold accepting, from blocks in pipeline order."""
        tries = int(min(200 * self.prepared.tasks, 20_000, max(1_000, 1_000_000 / len(ends))))
        for heat in (3e-3, 1e-3, 3e-4):
            self._improve(length, ends, sizes, tries, heat)

    def _polish(self) -> None:
        """Search around the incumbent while that improves it."""
        while self.plan is not None:
            before = self.best
            rank = np.empty(self.prepared.tasks, dtype=np.int64)
            rank[self.prepared.order] = np.arange(self.prepared.tasks)
            ends = np.array([rank[list(batch)].max() + 1 for batch in self.plan.batches])
            sizes = np.array([len(batch) for batch in self.plan.batches])
            self._anneal(self.plan.speculation_length, ends, sizes)
            self._report()
            if self.best > before * (1 - 1e-5):
                return

    # ------------------------------------------------------------------ Lagrangian bound

    def _refine(self, part: Part) -> bool:
        """Let a part's bound be raised further: one more special position or finer cells; tell whether that could be.

        The position comes where the innermost special ones have the more weight.
        """
        assert part.weights is not None
        gained, part.refined = part.bound > part.refined, part.bound
        if part.specials < part.batches and (gained or self._cells(part) == 0):
            fewest = self._entries * (_FEWEST_CELLS / self.prepared.tasks if self.coarse else 1.0) ** 2
            if fewest * part.steps(part.specials + 1) <= part.effort:
                before, behind = part.weights[:, : part.front].sum(axis=0), part.weights[:, part.front :].sum(axis=0)
                part.weights = np.insert(part.weights, part.front, 0.0, axis=1)
                part.front += int(before[-1:].sum() > behind[:1].sum())
                part.specials += 1
                part.limits = None
                part.paths = []
                return True
        elif self._cells(part) == 0:
            return False
        if part.effort >= _LONGEST_PATH:
            return False
        part.effort *= 4
        part.refined = 0.0
        part.paths = []
        return True

    def _next_number(self, part: Part) -> list[Part]:
        """Split a part of so many batches or more: so many, and one more or more."""
        children = [dataclasses.replace(part, more=False, paths=[], refined=0.0)]
        if part.batches < self.prepared.tasks:
            children.append(dataclasses.replace(part, batches=part.batches + 1, paths=[], refined=0.0))
        return children

    def _ascend(self, part: Part) -> None:
        """Raise the part's bound until it is closed or nothing is left to gain; rate every path on the way."""
        tasks, weights = self.prepared.tasks, part.weights
        few = self.rating and not part.more and _orders(tasks, part.batches) <= _FEW
        if few:
            part.front = part.specials = part.batches
        specials, tables = part.specials, self._tables(part.length, self._cells(part))
        if weights is None:
            weights = np.zeros((len(tables.d), specials))
            weights[:, 0] += part.first_weight
            weights[:, -1] += 1.0 - part.first_weight
            part.weights = weights
        if part.limits is None:
            part.limits = np.tile(np.array([1, tasks, 1, tasks]), (specials + 1, 1))
        if part.enumerated or few:
            return
        from specopt.solvers.serving_latency.cutting_planes import CuttingPlanes

        planes = CuttingPlanes(weights, self.best)
        for old in part.paths:
            planes.add_cut(old.gradient)
        limits, last = tables.limits(part.limits), tables.last
        work = _work_arrays(tables, specials, part.pool)
        met = np.zeros((3, tasks + part.batches), dtype=np.int64)
        blocks = np.zeros(1, dtype=np.int64)
        seconds = _SECONDS_PER_ENTRY * tables.entries * part.steps(specials)
        for _ in range(_ROUNDS):
            if seconds > self.budget.remaining:  # a path cannot be interrupted
                raise OutOfTime
            gradient = np.zeros_like(weights)
            value = self.bounds.lagrangian(
                *tables.arrays, last, part.front, part.pool, part.more, limits, weights, *work, met, blocks, gradient
            )
            self.stats["lagrangian_rounds"] += 1
            if value > part.bound:
                part.bound, part.weights = value, weights
            if part.bound >= self.cut:
                return
            ends, sizes, positions = met[:, : blocks[0]].copy()
            path = Path(ends, sizes, positions, gradient)
            part.paths.append(path)
            if self.rating:
                self._rate_path(part, tables, path)
            self._report()
            planes.learn(weights, value, gradient)
            proposal = planes.propose()
            if proposal is None:
                break
            weights = proposal
        part.mixture = planes.mixture()

    def _halves(self, part: Part) -> list[Part]:
        """Split a part at the position whose block varies most among the paths that make up its bound."""
        assert part.limits is not None and part.mixture is not None
        sizes = np.zeros((len(part.paths), part.batches))
        ends = np.zeros_like(sizes)
        for k, path in enumerate(part.paths):
            sizes[k, path.positions], ends[k, path.positions] = path.sizes, path.ends
        halves = []
        spread = []
        for column, values in ((0, sizes), (2, ends)):
            mean = part.mixture @ values
            deviations = np.sqrt(part.mixture @ (values - mean) ** 2)
            spread += [(float(deviations[p]), column, p, float(mean[p])) for p in range(part.batches)]
        deviation, column, position, middle = max(spread)
        if deviation < 1e-6:  # one path alone: no split promises anything, enumerate to the end
            return [dataclasses.replace(part, mixture=None, enumerated=True)]
        for side in (0, 1):
            limits = part.limits.copy()
            if side == 0:
                limits[position, column + 1] = math.floor(middle)
            else:
                limits[position, column] = math.floor(middle) + 1
            child = dataclasses.replace(part, limits=limits, mixture=None)
            child.paths = [path for path in part.paths if child.allows(path)]
            halves.append(child)
        return halves

    def _rate_path(self, part: Part, tables: Tables, path: Path) -> None:
        """Rate the plan of a shortest path; blocks of the pool follow Johnson's rule between the special ones."""
        ends, sizes, at = path.ends, path.sizes, path.positions
        middle = part.specials
        d, v = tables.times(ends, sizes)
        place = np.where(at == middle, part.front - 0.5, at)
        if tables.cell != 1.0:
            ends = np.rint(ends * tables.cell).astype(np.int64)
            sizes = np.diff(ends, prepend=0)
            if (sizes > self.width[ends]).any():
                return
        # Johnson's rule: first those that draft faster, shortest draft first
        order = np.lexsort((np.where(at == middle, np.where(d < v, d, -v), 0.0), (at == middle) & (d >= v), place))
        order = order[sizes[order] > 0]
        seconds = self._rate(part.length, ends[order], sizes[order])
        if (part.more or part.pool) and seconds < self.best * 1.001:
            self._improve(part.length, ends[order], sizes[order])

    # ------------------------------------------------------------------ enumeration

    def _cut(self) -> None:
        """Try all ways to cut the tasks, then to order the blocks, whose Johnson bounds stay below the incumbent."""
        kernels = self.budget.load("serving_latency.cuts")
        tasks, scenarios = self.prepared.tasks, RANGES + 1
        blocks, order = np.zeros((2, tasks), dtype=np.int64), np.zeros((scenarios, tasks), dtype=np.int64)
        times, free = np.zeros((2, scenarios, tasks)), np.zeros((tasks + 1, 2, scenarios))
        stack, leaves = np.zeros((tasks + 1, 2), dtype=np.int64), np.zeros((_LEAVES, tasks), dtype=np.int64)
        for length in sorted({part.length for part in self.open}):
            tables = self._tables(length)
            bounds = np.empty(1 << (tasks - 1))
            for first in range(0, len(bounds), _CUTS):
                self._report()
                kernels.cut_bounds(first, *tables.arrays, bounds[first : first + _CUTS], blocks, times, order)
            for cut in np.argsort(bounds):
                if bounds[cut] >= self.cut:
                    break
                state = stack[0] = np.zeros(2, dtype=np.int64)
                while state[0] >= 0:
                    found = kernels.enumerate_orders(
                        _NODES, cut, *tables.arrays, self.cut, blocks, times, order, stack, free, state, leaves
                    )
                    if found:
                        chosen = leaves[:found, : state[1]]
                        self._rate_all(length, blocks[0][chosen], blocks[1][chosen], np.empty(found))
                    self._report()
            self.open = [part for part in self.open if part.length != length]

    def _enumerate(self, part: Part) -> bool:
        """Try all ways to cut and order the part's batches whose bound stays below the incumbent.

        Returns whether that was done: it is given up where a split promises more than patience.
        """
        tables = self._tables(part.length)
        blocks, tasks = part.batches, self.prepared.tasks
        assert part.weights is not None, "the part's bound was raised before"
        table, value = _work_arrays(tables, blocks, 0)
        if _orders(tasks, blocks) <= _FEW:
            value[:] = 0.0
            value[-1], value[:, -1], value[-1, -1] = np.inf, np.inf, 0.0  # all tasks and all positions are to be taken
        else:
            self.bounds.lagrangian(
                *tables.arrays, tables.last, blocks, 0, False, part.limits, part.weights, table, value,
                np.zeros((3, tasks), dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros_like(part.weights),
            )  # fmt: skip
        stack = np.zeros((blocks + 1, 4), dtype=np.int64)
        spent = np.zeros(blocks + 1)
        state = np.zeros(2, dtype=np.int64)
        ends, sizes = np.zeros((2, _LEAVES + 1, blocks), dtype=np.int64)
        while state[0] >= 0 and (state[1] < _PATIENCE or part.mixture is None):
            found = self.bounds.enumerate_blocks(
                _NODES, *tables.arrays, part.limits, table, value, self.cut, stack, spent, state, ends, sizes
            )  # fmt: skip
            if found:
                self._rate_all(part.length, ends[:found], sizes[:found], np.empty(found))
            self._report()
        self.stats["nodes"] += int(state[1])
        return bool(state[0] < 0)


def _work_arrays(tables: Tables, specials: int, pool: int) -> tuple[Floats, Floats]:
    """Return the kernels' work arrays: costs by position, values by state."""
    return np.zeros((specials + 1, *tables.d.shape[1:])), np.empty(((pool + 1) << specials, tables.d.shape[2]))


def _orders(tasks: int, batches: int) -> float:
    """Return the number of ways to cut the tasks into contiguous batches and to order those."""
    return math.comb(tasks - 1, batches - 1) * math.factorial(batches)
