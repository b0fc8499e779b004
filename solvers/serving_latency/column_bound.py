"""A lower bound on the latency for known output lengths, computed by column generation over
fractional partitions of the tasks into batches.

A plan is a set of batches that contains every task once. Let the steps be divided into ranges, and
let D_r and V_r be a batch's summed draft and verify times over range r. With overlap, the makespan
of a step is at least the time for all drafting and the last verification. It is also at least the
time for the first drafting and all verification. The first and the last active batch differ from
step to step. With x = 1 for its batches, every plan satisfies

    T_r >= sum x (D_r + L_r v_r),    T_r >= sum x (V_r + F_r d_r),
    sum x F_r >= |r|,    sum x L_r >= |r|,
    sum of x over the batches that contain task k = 1,

where F_r and L_r are the numbers of steps of range r in which the batch is first and last. d_r and
v_r are the batch's stage times at the first step of the range. The stage times at later steps are
at least as large. No step is counted in both F_r and L_r unless the batch contains all tasks that
reach the step. Without overlap, the costs add up. The optimal value of the linear program with
fractional x is a lower bound on the sum of T_r.

The program has too many columns to be built in full, but any dual prices yield a bound. Let pi_k be
the price of task k, and let phi_r and lambda_r be the prices of a first and a last step in range r.
Let w_r in [0, 1] be the weight of the first constraint on T_r against the second. If no batch earns
more than it costs in any roles, then the sum of the prices is a bound. Otherwise, prices can be
corrected in two ways. Either every pi is lowered by the largest excess earnings per task of any
batch, or all pi are scaled by the smallest ratio of cost to earnings. The batch with the largest
excess is easy to find, because the cost of a batch depends only on its size, its longest input and
its longest output. For each choice of these three numbers, the best batch consists of the
highest-priced tasks that exceed neither length. So the bound never depends on the solver of the
linear program, which only proposes prices.

For many tasks, prices are interpolated between nodes (a few inputs by a few outputs), so the
program has one row per node instead of one per task. Similar lengths form classes: a batch costs as
much as a batch with the shortest lengths of its classes, and may contain any task of its classes.
Interpolation restricts the prices, and classes lower the costs. The bound becomes weaker, but
remains valid.

Prices converge quickly because the program enforces monotonicity: a task that exceeds another in
neither length never needs a higher price. For each such pair, a column enforces this property.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import highspy
import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.models.result import Termination
from specopt.solvers.budget import Budget
from specopt.solvers.highs import Highs
from specopt.solvers.serving_latency.bound import ends_of, entries
from specopt.solvers.serving_latency.stages import Stages
from specopt.solvers.solver_status import termination_of

# The bounds are valid for any of these values, which affect only tightness and the number of
# rounds.
RANGES = 3  # more ranges end with a better bound, but later
_TASKS_PER_CALL = 20_000  # number of classes of longest inputs priced per kernel call, times tasks
# number of classes of inputs, and of outputs; similar lengths in a class count as the shortest
_CLASSES = 1000
_CLASSES_OF_MANY = 100  # if batches are so large that more classes would take too long
_MANY_BATCHES = 1e7
# maximum number of tasks with prices of their own; above it, prices are interpolated
_LARGEST_EXACT = 300
_NODES = 16  # number of inputs, and of outputs
_CLOSED = 1e-5  # relative gap to the program's value at which the program counts as solved
_NEAR = 0.01  # relative gap below which another speculation length gains more
# number of rounds without progress of the bound or the program's value before giving up
_STALE = 25
_PARTS = 6  # parts into which the batches are divided; only one of them is searched per round
_LEAST, _END = range(2)  # rows of classes


class _Prices(NamedTuple):
    """Dual prices of the linear program.

    `task` contains the price of each task. For each range of steps, `first` is the price of a step
    in which a batch is the first active batch, and `last` is the price of a step in which it is the
    last. `weight` is the weight w_r of the first of the two constraints on T_r.
    """

    task: Floats
    first: Floats
    last: Floats
    weight: Floats


class ColumnBound:
    """A column-generation bound for one mechanism and one speculation length.

    The object holds the linear program and the best bound found so far.

    Parameters
    ----------
    at
        Stage times for the mechanism and the speculation length.
    batches
        Batches of a plan in pipeline order, as positions in the sorted task order. The program
        initially contains only these batches.
    scale
        Typical magnitude of the inference time T_inf, in seconds, used to scale the program.
    budget
        Budget whose time limit applies to the search for batches.
    ranges
        Maximum number of ranges of steps. The first range is the prefill step.
    """

    def __init__(
        self, at: Stages, batches: list[Ints], scale: float, budget: Budget, ranges: int = RANGES
    ) -> None:
        self.at = at
        self.budget = budget
        self.ranges = ranges
        self.bound = 0.0
        self.near = self.done = False
        self._kernels: Any = budget.load("serving_latency.column_bound")
        self._scale = scale if scale > 0.0 else 1.0
        steps = ends_of(at.steps)
        if len(steps) > ranges + 1:
            at_most = np.linspace(1, len(steps) - 1, ranges, dtype=np.int64)
            steps = np.unique(np.concatenate([[0], steps[at_most]]))
        self._ends = steps
        self._by_output = np.argsort(at.prepared.outputs, kind="stable")
        # by size, the step after which a batch may be alone
        self._alone = np.append(at.steps[self._by_output[::-1]], 0)
        place = self._by_output.argsort()
        most = _CLASSES if entries(at) <= _MANY_BATCHES else _CLASSES_OF_MANY
        inputs, outputs = at.prepared.inputs, at.prepared.outputs[self._by_output]
        self._inputs = _partition(inputs, np.arange(len(inputs)), place, most)
        self._outputs = _partition(outputs, self._by_output, self._by_output, most)
        self._nodes, self._share = _nodes(at)
        self._ranges = len(steps) - 1 if at.overlap else 0
        self._counts = np.diff(steps).astype(np.float64)[: self._ranges]
        self._center: _Prices | None = None
        self._stale = 0
        self._part = 0
        self._value = np.inf
        # the batches of the program and those of its latest solution
        self._written, self._used = list[Ints](), list[Ints]()
        self._model = Highs()
        self._write_rows()
        self._write_pairs()
        self._write_plan(batches)

    def borrow(self, other: ColumnBound) -> None:
        """Evaluate the prices of another program, rescaled to this program's magnitude, and update
        the bound. Adopt the batches of the other program's solution if it concerns the same plans.
        """
        if other._center is None or len(other._ends) < 3 or len(self._ends) < 3:
            return
        center, factor = other._center, self._scale / other._scale
        r = 1 + np.arange(len(self._ends) - 2) * (len(other._ends) - 2) // (len(self._ends) - 2)
        first, last, weight = (
            each[np.append(0, r)] for each in (center.first, center.last, center.weight)
        )
        prices = _Prices(center.task * factor, first * factor, last * factor, weight)
        self._price(prices)
        if other.at is self.at and other._used:
            self._write_batches(other._used, *self._lengths(other._used), prices)

    def improve(self) -> None:
        """Solve the program once, search one part of the batches for columns to add, and if it
        contains none, search all batches and raise the bound if possible.

        Set `near` if the bound is close to the program's value, and set `done` if no more progress
        is expected.
        """
        self._model.run()
        if termination_of(self._model.getModelStatus()) is not Termination.CONVERGED:
            self.near = self.done = True
            return
        value = self._model.getObjectiveValue() * self._scale
        values = np.array(self._model.getSolution().col_value)[-len(self._written) :]
        self._used = [self._written[k] for k in np.flatnonzero(values > 0.0)]
        prices = self._proposal()
        self._part = (self._part + 1) % _PARTS
        raised, found = self._price(prices, self._part)
        if self._part and not found:
            raised, found = self._price(prices)
        self._stale = 0 if raised or value < self._value * (1 - 1e-7) else self._stale + 1
        self._value = value
        gap = value - self.bound
        self.near = not found or gap <= _NEAR * value
        self.done = not found or gap <= _CLOSED * value or (self.near and self._stale > _STALE)

    def _price(self, prices: _Prices, part: int = 0) -> tuple[bool, int]:
        """Evaluate prices, and add columns for some of the batches that earn more than they cost.

        If `part` is positive, only that part of the batches is searched, and the bound stays the
        same. Return a tuple (raised, added): whether the bound increased, and how many batches were
        added.
        """
        prepared = self.at.prepared
        tasks = prepared.tasks
        dear = np.argsort(-prices.task, kind="stable")
        worst = np.array([0.0, 1.0])
        rows = [np.zeros((0, 3), np.int64)]
        roles = np.array([prices.weight, prices.first, prices.last])
        count = self._inputs.shape[1]
        classes = self._kernels.Classes(self._ends, self._inputs, self._outputs, self._by_output)
        priced = self._kernels.Prices(dear, prices.task, roles, 1e-9 * self._scale)
        at_once = max(1, _TASKS_PER_CALL // tasks)
        for start in range(part * at_once, count, at_once * (_PARTS if part else 1)):
            self.budget.check()
            found = np.zeros((at_once, 3), np.int64)
            noticed = self._kernels.price_batches(
                start, min(count, start + at_once), self.at.data, classes, priced, worst, found
            )
            rows.append(found[:noticed])
        places = np.concatenate(rows)
        if len(places):
            self._write_batches(*self._found(dear, places), prices=prices)
        if part:
            return False, len(places)
        total = float(prices.task.sum())
        role_sum = float(self._counts @ (prices.first + prices.last)[: self._ranges])
        shifted, scaled = total + tasks * worst[0], total * worst[1] if total > 0 else -np.inf
        value = float(role_sum + max(shifted, scaled))
        raised = value > self.bound or self._center is None
        if raised:
            task = prices.task * worst[1] if scaled > max(shifted, 0.0) else prices.task
            self._center = prices._replace(task=task)
            self.bound = max(self.bound, value)
        return raised, len(places)

    def _found(self, dear: Ints, places: Ints) -> tuple[list[Ints], Ints, Ints]:
        """Build the batches that pricing has found. Each batch consists of the highest-priced tasks
        that do not exceed the batch's input class or output class.

        Return a tuple (batches, tops, steps). For each batch, `tops` contains the task whose input
        is charged as the longest input. `steps` contains the numbers of steps that determine the
        cost of each batch and its roles.
        """
        place = self._by_output.argsort()
        batches = []
        for c, q, size in places:
            able = (dear < self._inputs[_END, c]) & (place[dear] < self._outputs[_END, q])
            batches.append(dear[np.flatnonzero(able)[:size]])
        least, end = self._outputs[:2, places[:, 1]]
        return (
            batches,
            self._inputs[_LEAST, places[:, 0]],
            self.at.steps[[least, self._by_output[end - 1]]],
        )

    def _proposal(self) -> _Prices:
        """Return the dual prices from the current solution of the linear program."""
        dual = np.maximum(0.0, np.array(self._model.getSolution().row_dual))
        nodes, ranges = len(self._nodes), self._ranges
        free = np.zeros(len(self._ends) - 1)
        # einsum: the sums of other libraries depend on threads
        interpolated = np.einsum("kn,n->k", self._share, dual[:nodes])
        task = np.maximum(0.0, interpolated * self._scale)
        if not ranges:
            return _Prices(task, free, free, free)
        draft, verify, first, last = dual[nodes:].reshape(4, ranges)
        total = draft + verify
        weight = np.where(total > 0, draft / np.where(total > 0, total, 1.0), 0.5)
        return _Prices(
            task, first * self._scale / self._counts, last * self._scale / self._counts, weight
        )

    # ------------------------------------------------------------------ the program

    def _write_rows(self) -> None:
        held, ranges = self._share.sum(axis=0), self._ranges
        for r in range(ranges):
            self._model.addVar(0.0, highspy.kHighsInf)
            self._model.changeColCost(r, 1.0)
        # a row per node, then by range: both stage rows, and the rows of first and last steps
        lower = np.concatenate([held, np.zeros(2 * ranges), np.ones(2 * ranges)])
        entries = np.arange(2 * ranges, dtype=np.int32)
        self._model.addRows(
            len(lower),
            lower,
            np.full(len(lower), highspy.kHighsInf),
            len(entries),
            np.searchsorted(entries, np.arange(len(lower)) - len(held)).astype(np.int32),
            entries % max(1, ranges),
            np.ones(len(entries)),
        )

    def _write_pairs(self) -> None:
        """Add columns that keep prices monotone. These columns bound the price of each node by the
        prices of the closest nodes whose input and output are at least as long.
        """
        outputs = self._nodes[:, 1]
        for k in range(len(outputs)):
            closest = -1.0
            for j in range(k - 1, -1, -1):
                if closest < outputs[j] <= outputs[k]:
                    closest = float(outputs[j])
                    pair = np.array([j, k], np.int32)
                    self._model.addCol(0.0, 0.0, highspy.kHighsInf, 2, pair, np.array([1.0, -1.0]))

    def _write_plan(self, batches: list[Ints]) -> None:
        """Add the batches of a plan as columns, with the roles that they have in the plan."""
        tops, steps = self._lengths(batches)
        first, last = np.zeros((2, len(batches), len(self._ends) - 1))
        times = np.unique(np.concatenate([self._ends, steps[0]]))
        for before, end in itertools.pairwise(times):
            r = int(np.searchsorted(self._ends[1:], end))
            active = np.flatnonzero(steps[0] >= end)
            first[active[0], r] += end - before
            last[active[-1], r] += end - before
        self._write_batches(batches, tops, steps, roles=(first, last))

    def _lengths(self, batches: list[Ints]) -> tuple[Ints, Ints]:
        """Return the longest inputs of batches and their steps, as `_write_batches` needs them."""
        steps = [self.at.steps[batch].max() for batch in batches]
        return np.array([batch.max() for batch in batches]), np.array([steps, steps])

    def _write_batches(
        self,
        batches: list[Ints],
        tops: Ints,
        steps: Ints,
        prices: _Prices | None = None,
        roles: tuple[Floats, Floats] | None = None,
    ) -> None:
        """Add one column for each batch.

        For each batch, `tops` contains the task whose input is charged as the longest input.
        `steps` contains the numbers of steps that determine the cost of each batch and its roles.
        If `roles` is None, each batch gets the roles that earn more than they cost.
        """
        self._written += batches
        count, ranges, nodes = len(batches), self._ranges, len(self._nodes)
        stages = np.empty((count, 4, len(self._ends) - 1))
        sizes = np.array([len(batch) for batch in batches])
        self._kernels.batch_stages(self.at.data, sizes, tops, steps[0], self._ends, stages)
        draft, verify, draft_step, verify_step = stages.transpose(1, 0, 2)
        stop = np.clip(steps[1][:, None], self._ends[:-1], self._ends[1:])
        active = stop - self._ends[:-1]
        columns = np.zeros((count, nodes + 4 * ranges))
        for m, batch in enumerate(batches):
            columns[m, :nodes] = self._share[batch].sum(axis=0)
        cost = np.zeros(count)
        if ranges:
            if roles is None:
                assert prices is not None
                first = prices.first - (1.0 - prices.weight) * draft_step
                last = prices.last - prices.weight * verify_step
                sole = np.maximum(
                    0, stop - np.maximum(self._ends[:-1], self._alone[sizes][:, None])
                )
                roles = (
                    np.where(first >= last, active, sole) * (first > 0),
                    np.where(first >= last, sole, active) * (last > 0),
                )
            first, last = roles
            blocks = columns[:, nodes:].reshape(count, 4, ranges)
            blocks[:, 0] = -(draft + last * verify_step) / self._scale
            blocks[:, 1] = -(verify + first * draft_step) / self._scale
            blocks[:, 2] = first / self._counts
            blocks[:, 3] = last / self._counts
        else:
            cost = (draft + verify).sum(axis=1) / self._scale
        at, index = np.nonzero(columns)
        starts = np.searchsorted(at, np.arange(count)).astype(np.int32)
        self._model.addCols(
            count,
            cost,
            np.zeros(count),
            np.full(count, highspy.kHighsInf),
            len(index),
            starts,
            index.astype(np.int32),
            columns[at, index],
        )


def _partition(lengths: Floats, tasks: Ints, others: Ints, most: int) -> Ints:
    """Divide lengths in ascending order into at most `most` classes of similar lengths.

    Return an array with one column for each class. Its rows contain the task with the shortest
    length in the class, the position at which the class ends, and the smallest entry of `others` in
    the class.
    """
    starts = np.flatnonzero(np.diff(lengths, prepend=-1.0))
    if len(starts) > most:
        starts = starts[np.linspace(0, len(starts) - 1, most, dtype=np.int64)]
    ends = np.append(starts[1:], len(lengths))
    return np.stack([tasks[starts], ends, np.minimum.reduceat(others, starts)])


def _nodes(at: Stages) -> tuple[Floats, Floats]:
    """Return the sorted nodes (input, output) at which prices are defined, and each node's weight
    in the price of each task.

    The weights of each task add up to one.
    """
    inputs, outputs = at.prepared.inputs, at.prepared.outputs
    if at.prepared.tasks <= _LARGEST_EXACT:
        return np.stack([inputs, outputs], axis=1), np.eye(at.prepared.tasks)
    axes = [
        np.unique(np.quantile(lengths, np.linspace(0.0, 1.0, _NODES)))
        for lengths in (inputs, outputs)
    ]
    hats = [
        np.array([np.interp(lengths, axis, unit) for unit in np.eye(len(axis))])
        for lengths, axis in zip((inputs, outputs), axes, strict=True)
    ]
    share = np.einsum("ik,jk->kij", *hats).reshape(at.prepared.tasks, -1)
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2), share
