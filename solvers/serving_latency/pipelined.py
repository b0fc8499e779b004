"""The search behind `exact` for the pipelined mechanism: bounds, incumbents and enumeration.

For conservative output lengths contiguous batches lose nothing, but their pipeline order is free. For every
speculation length l and number of batches M the search

1. discards (l, M) by bounds: each stage's own work (`bound`), then first and last batch singled out;
2. raises a Lagrangian bound over pipeline positions, a shortest path over (prefix, occupied positions), see
   `specopt.solvers._kernels.serving_latency.bounds`; every path is a plan, rated exactly;
3. enumerates what is left: all ways to cut and order M blocks whose bound stays below the incumbent.

Step 3 is a proof. Numbers of batches beyond `LARGEST_ENUMERATED` are bounded together by a relaxation that keeps the
first and the last positions apart and pools those between, and searched by local moves: their gap is certified, not
closed.
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
from specopt.solvers.serving_latency.contiguous import additive_batches, algorithm_1_batches
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import Stages, stages, workspace

LARGEST_ENUMERATED = 12
TOLERANCE = 4e-10  # what counts as no improvement; below the 1e-9 within which a result is optimal
_RANGES = 3  # decoding steps are bounded in this many ranges
_ROUNDS = 80  # evaluations of the Lagrangian bound per part
_SECONDS_PER_ENTRY = 3e-9  # of a shortest path, roughly
_NODES = 50000  # enumeration nodes per kernel call
_PATIENCE = 100000  # enumeration nodes before a part is split
_LEAVES = 2048  # leaves per kernel call
_PATH = 30_000_000  # size of the shortest paths that bound pooled parts
_MASKS = 300_000_000  # size of the shortest paths that bound enumerated parts
_CHEAP = 30_000_000  # entries up to which every number of batches is bounded apart
_FEW = 20_000  # orders and cuts that are enumerated sooner than bounded well


@dataclass(frozen=True)
class Tables:
    """Stage times of blocks (e, b) by scenario s for one speculation length.

    Parameters
    ----------
    at
        The arrays of that speculation length.
    d, v
        Draft and verify times [s, b, e]; for affine runtimes [s, 0, e] per task and [s, 1, e] per batch.
    """

    at: Stages
    d: Floats
    v: Floats

    @property
    def arrays(self) -> tuple[bool, Floats, Floats]:
        """What every kernel takes first."""
        return self.at.linear, self.d, self.v

    def times(self, ends: Ints, sizes: Ints) -> tuple[Floats, Floats]:
        """Return draft and verify time of blocks over all steps."""
        d, v = self.d.sum(axis=0), self.v.sum(axis=0)
        if self.at.linear:
            return sizes * d[0, ends] + d[1, ends], sizes * v[0, ends] + v[1, ends]
        return d[sizes, ends], v[sizes, ends]


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
        Speculation length and number of batches; `pooled` parts stand for that number *or more*.
    first_weight
        By scenario, the best weight of the first position where only the first and the last have any.
    limits
        By position: least and largest size, least and largest end of the block there.
    weights, paths, mixture
        Once the bound was raised: its Lagrangian weights, the paths met, and how they mix in the dual.
    enumerated
        Whether only enumeration, to the end, is left to do.
    """

    bound: float
    length: int
    batches: int
    pooled: bool = False
    first_weight: Floats = field(default_factory=lambda: np.full(_RANGES + 1, 0.5))
    limits: Ints | None = None
    weights: Floats | None = None
    paths: list[Path] = field(default_factory=list)
    mixture: Floats | None = None
    enumerated: bool = False

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
        self.last = _last_ends(self.width)
        self.work = workspace(self.plans, prepared.tasks)
        self.best = math.inf if budget.objective is None else budget.objective - prepared.communication_seconds
        self.plan: ServingLatencyPlan | None = None
        self.small = all(_orders(prepared.tasks, m) <= _FEW for m in range(1, prepared.tasks + 1))
        self.rating = True  # whether paths are rated as plans
        self.open: list[Part] = []
        self.left: list[Part] = []  # pooled parts that stay open at the end
        self.tables: dict[int, Tables] = {}
        self.random = np.array([0x9E3779B97F4A7C15 ^ (budget.seed * 2 + 1) % 2**64], dtype=np.uint64)
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
        for part in sorted(self.open, key=lambda p: p.bound):
            if part.bound < self.cut:
                self.stats["parts"] += 1
                self._ascend(part)
                if part.bound < self.cut and not self.small:
                    self._polish()
        while self._prune():
            part = min(self.open, key=lambda p: p.bound)
            # a part stays open, and its bound counts, until it is closed or all that replaces it is open
            if part.pooled:
                self.left.append(part)
                self.open.remove(part)
            elif self._enumerate(part):
                self.open.remove(part)
            else:
                self.open += (halves := self._halves(part))
                self.open.remove(part)
                for half in halves:
                    if half.bound < self.cut:
                        self._ascend(half)
            self._report()
        return self.bound

    def certify(self) -> float:
        """Return the bound of the whole mechanism without looking for plans: raise the least part's until it stays."""
        self.rating = False
        self.open = [Part(0.0, length, 1, pooled=True) for length in self.prepared.lengths]
        for part in self.open:
            self._bound_stages(part)
        self.open = [child for part in self.open if part.bound < self.cut for child in self._split(part)]
        while self._prune():
            part = min(self.open, key=lambda p: p.bound)
            if part.weights is not None:
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
        self.open = [Part(0.0, length, 1, pooled=True) for length in prepared.lengths]
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
        first = np.full((cap + 1, _RANGES + 1), 0.5)
        if self._entries * cap <= _CHEAP:
            tables = self._tables(part.length)
            value = np.empty((self.prepared.tasks + 1, 4, cap + 1))
            for prefill in (0.0, 0.5, 1.0):
                for decode in (0.0, 0.3, 0.5, 0.7, 1.0):
                    weight = np.full(len(tables.d), decode)
                    weight[0] = prefill
                    before = bounds.copy()
                    self.bounds.ends_bound(*tables.arrays, self.width, weight, value, bounds)
                    first[bounds > before] = weight
        if self.prepared.tasks < cap:
            bounds[cap] = math.inf
        return [
            Part(float(bounds[m]), part.length, m, pooled=m == cap, first_weight=first[m])
            for m in range(1, cap + 1)
            if bounds[m] < self.cut
        ]

    @property
    def _largest_enumerated(self) -> int:
        """Largest number of batches whose plans are enumerated: what the shortest path over 2^M masks allows."""
        fitting = (m for m in range(LARGEST_ENUMERATED, 1, -1) if self._entries * m * 2**m <= _MASKS)
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

    def _tables(self, length: int) -> Tables:
        if length not in self.tables:
            self.tables[length] = scenario_tables(stages(self.prepared, length), self.width, self.bounds)
        return self.tables[length]

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
            self.annealing.improve_sequence(tries, *at.arrays, heat, *self.work, blocks, count, seconds, self.random)
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

    def _ascend(self, part: Part) -> None:
        """Raise the part's bound until it is closed or nothing is left to gain; rate every path on the way."""
        tables = self._tables(part.length)
        front, specials = self._specials(part)
        tasks = self.prepared.tasks
        weights = part.weights
        if weights is None:
            weights = np.zeros((len(tables.d), specials))
            weights[:, 0] += part.first_weight
            weights[:, -1] += 1.0 - part.first_weight
            part.weights = weights
            part.limits = np.tile(np.array([1, tasks, 1, tasks]), (specials, 1))
        if part.enumerated or (self.rating and not part.pooled and _orders(tasks, part.batches) <= _FEW):
            return
        from specopt.solvers.serving_latency.cutting_planes import CuttingPlanes

        planes = CuttingPlanes(weights, self.best)
        for old in part.paths:
            planes.add_cut(old.gradient)
        work = _work_arrays(tables, specials + int(part.pooled), specials)
        met = np.zeros((3, tasks), dtype=np.int64)
        blocks = np.zeros(1, dtype=np.int64)
        seconds = _SECONDS_PER_ENTRY * self._entries * specials * 2**specials
        for _ in range(_ROUNDS):
            if seconds > self.budget.remaining:  # a path cannot be interrupted
                raise OutOfTime
            gradient = np.zeros_like(weights)
            value = self.bounds.lagrangian(
                *tables.arrays, self.width, self.last, front, part.pooled, part.limits, weights, *work, met, blocks,
                gradient,
            )  # fmt: skip
            self.stats["lagrangian_rounds"] += 1
            if value > part.bound:
                part.bound, part.weights = value, weights
            if part.bound >= self.cut:
                return
            ends, sizes, positions = met[:, : blocks[0]].copy()
            path = Path(ends, sizes, positions, gradient)
            part.paths.append(path)
            if self.rating:
                self._rate_path(part, tables, front, path)
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

    def _specials(self, part: Part) -> tuple[int, int]:
        """Return how many positions are special at the front, and in all."""
        if not part.pooled:
            return part.batches, part.batches
        specials = min(10, part.batches, max(2, int(math.log2(_PATH / self._entries)) - 2))
        return specials - specials // 3, specials

    def _rate_path(self, part: Part, tables: Tables, front: int, path: Path) -> None:
        """Rate the plan of a shortest path; blocks of the pool follow Johnson's rule between the special ones."""
        ends, sizes, at = path.ends, path.sizes, path.positions
        middle = self._specials(part)[1] if part.pooled else -1
        d, v = tables.times(ends, sizes)
        place = np.where(at == middle, front - 0.5, at)
        # Johnson's rule: first those that draft faster, shortest draft first
        order = np.lexsort((np.where(at == middle, np.where(d < v, d, -v), 0.0), (at == middle) & (d >= v), place))
        seconds = self._rate(part.length, ends[order], sizes[order])
        if part.pooled and seconds < self.best * 1.01:
            self._improve(part.length, ends[order], sizes[order])

    # ------------------------------------------------------------------ enumeration

    def _enumerate(self, part: Part) -> bool:
        """Try all ways to cut and order the part's batches whose bound stays below the incumbent.

        Returns whether that was done: it is given up where a split promises more than patience.
        """
        tables = self._tables(part.length)
        blocks, tasks = part.batches, self.prepared.tasks
        assert part.weights is not None, "the part's bound was raised before"
        table, value = _work_arrays(tables, blocks, blocks)
        if _orders(tasks, blocks) <= _FEW:
            value[:] = 0.0
            value[-1], value[:, -1], value[-1, -1] = np.inf, np.inf, 0.0  # all tasks and all positions are to be taken
        else:
            self.bounds.lagrangian(
                *tables.arrays, self.width, self.last, blocks, False, part.limits, part.weights, table, value,
                np.zeros((3, tasks), dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros_like(part.weights),
            )  # fmt: skip
        stack = np.zeros((blocks + 1, 4), dtype=np.int64)
        spent = np.zeros(blocks + 1)
        state = np.zeros(2, dtype=np.int64)
        ends, sizes = np.zeros((2, _LEAVES + 1, blocks), dtype=np.int64)
        while state[0] >= 0 and (state[1] < _PATIENCE or part.mixture is None):
            found = self.bounds.enumerate_blocks(
                _NODES, *tables.arrays, self.width, part.limits, table, value, self.cut, stack, spent, state, ends,
                sizes,
            )  # fmt: skip
            if found:
                self._rate_all(part.length, ends[:found], sizes[:found], np.empty(found))
            self._report()
        self.stats["nodes"] += int(state[1])
        return bool(state[0] < 0)


def widths(prepared: Prepared) -> Ints:
    """Return, for every end e = 1..K, the largest block that ends there and fits; conservative output lengths."""
    outputs = float(prepared.problem.longest_output)
    kv_draft, free_draft, kv_verify, free_verify = prepared.memory
    width = np.zeros(prepared.tasks + 1, dtype=np.int64)
    for e in range(1, prepared.tasks + 1):
        tokens = float(prepared.inputs[e - 1]) + outputs
        limits = [free / (kv * tokens) for kv, free in ((kv_draft, free_draft), (kv_verify, free_verify)) if kv > 0]
        size = int(min([e, *limits]))
        while size < e and prepared.fits(size + 1, float(prepared.inputs[e - 1]), outputs):
            size += 1
        while size > 0 and not prepared.fits(size, float(prepared.inputs[e - 1]), outputs):
            size -= 1
        width[e] = size
    return width


def scenario_tables(at: Stages, width: Ints, kernels: Any) -> Tables:
    """Return the stage times of all blocks by scenario: the prefill step, and ranges of decoding steps."""
    steps, tasks = int(at.steps[0]), at.prepared.tasks
    starts = np.array([1, *(2 + (steps - 1) * r // _RANGES for r in range(_RANGES + 1))], dtype=np.int64)
    filled = np.minimum(width, 1) if at.linear else width
    d, v = np.zeros((2, _RANGES + 1, int(filled.max()) + 1, tasks + 1))
    kernels.scenario_tables(*at.arrays, filled, starts, d, v)
    if at.linear:  # a batch of b costs the overheads and b times what is left of one alone
        for table, passes, pieces in ((d, at.length, at.runtimes[0]), (v, 1, at.runtimes[1])):
            fixed = np.diff(starts)[:, None] * passes * pieces[0, 1]
            table[:, 0], table[:, 1] = table[:, 1] - fixed, fixed
    return Tables(at, d, v)


def _last_ends(width: Ints) -> Ints:
    """Return the last end at which a block of b tasks fits, for b = 0.. to the largest: wide ones fit early only."""
    last = np.zeros(int(width.max()) + 1, dtype=np.int64)
    for e, size in enumerate(width):
        last[1 : size + 1] = e
    return last


def _work_arrays(tables: Tables, positions: int, specials: int) -> tuple[Floats, Floats]:
    """Return the kernels' work arrays: costs by position, values."""
    return np.zeros((positions, *tables.d.shape[1:])), np.empty((1 << specials, tables.d.shape[2]))


def _orders(tasks: int, batches: int) -> float:
    """Return the number of ways to cut the tasks into contiguous batches and to order those."""
    return math.comb(tasks - 1, batches - 1) * math.factorial(batches)
