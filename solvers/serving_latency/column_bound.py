"""Known output lengths: a bound from fractional partitions into batches, by column generation.

A plan is a set of batches that holds every task once. Let the steps be divided into ranges, and let
D_r, V_r be a batch's summed draft and verify times over range r. With overlap, the makespan of a
step is at least all drafting and the last verification, and at least the first drafting and all
verification. The first and the last of the batches that are still active differ from step to step.
So every plan satisfies, with x = 1 for its batches,

    T_r >= sum x (D_r + L_r v_r),    T_r >= sum x (V_r + F_r d_r),
    sum x F_r >= |r|,    sum x L_r >= |r|,
    sum of x over the batches that hold task k = 1,

where F_r and L_r count the steps of range r in which the batch is first and last. d_r and v_r are
its stage times at the first step of the range; later steps do not go below them. No step counts in
both unless the batch holds all tasks that reach it. Without overlap the costs simply add up. The
linear program that allows fractional x bounds sum T_r from below.

It has too many columns to write down, but any prices bound it. Let pi_k be a price per task, phi_r
and lambda_r per first and last step, w_r in [0, 1] the weight of the first row against the second.
If no batch, whatever roles it plays, earns more than it costs, the prices' total is a bound. If
some do, it is one after every pi is lowered by the excess earnings of the worst batch per task, or
after all pi are scaled by the least ratio of cost to earnings. Finding the worst is easy because a
batch's cost depends on its size, its longest input and its longest output alone: given these, it
holds the dearest of the tasks that exceed neither. So the bound never depends on the solver of the
linear program, which only proposes prices.

Of many tasks, prices are interpolated between nodes (a few inputs by a few outputs), so the program
has a row per node and not per task. Close lengths form classes: a batch costs as much as one with
the least lengths of its classes would, and may hold any task of these classes. The first restricts
the prices, the second lowers costs: both bound less, and neither bounds wrongly.

Prices settle fast because dearer tasks are kept dear: a task that exceeds another in neither length
never needs a higher price, so the program has a column for each such pair that enforces it.
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

# Every bound holds whatever these are: they move how close it comes, and after how many rounds.
RANGES = 3  # more of them bound better in the end, but later
_TASKS_PER_CALL = 20_000  # classes of longest inputs that are priced per kernel call, times tasks
# of inputs, and of outputs: where there are more different lengths, close ones count as the least
_CLASSES = 400
_CLASSES_OF_MANY = 100  # where batches are so large that more would take too long
_MANY_BATCHES = 1e7
# tasks up to which each has its own price; then prices are interpolated between nodes
_LARGEST_EXACT = 300
_NODES = 12  # of inputs, and of outputs
_CLOSED = 1e-5  # relative distance to the program's own value at which it counts as solved
_NEAR = 0.01  # the same at which another speculation length gains more
# rounds that move neither the bound nor the program's value after which none is expected
_STALE = 10
_LEAST, _END = range(2)  # rows of classes


class _Prices(NamedTuple):
    """Prices of tasks, of a step as first and as last, and the weights between the two stage
    rows.
    """

    task: Floats
    first: Floats
    last: Floats
    weight: Floats


class ColumnBound:
    """The linear program of one mechanism and speculation length, and the best bound so far.

    Parameters
    ----------
    at
        Stage times.
    batches
        A plan's batches in pipeline order, as sorted positions.
    scale
        Magnitude of T_inf, to keep the program well scaled.
    budget
        Whose clock is kept to.
    ranges
        How many ranges of steps, at most; the first of them is the prefill step.
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
        # by size: after which step a batch may be alone
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
        self._smooth = False
        self._stale = 0
        self._value = np.inf
        self._model = Highs()
        self._write_rows()
        self._write_pairs()
        self._write_plan(batches)

    def borrow(self, other: ColumnBound) -> None:
        """Begin with another program's prices, brought to this one's magnitude: a bound at once."""
        if other._center is None or len(other._ends) < 3 or len(self._ends) < 3:
            return
        center, factor = other._center, self._scale / other._scale
        r = 1 + np.arange(len(self._ends) - 2) * (len(other._ends) - 2) // (len(self._ends) - 2)
        first, last, weight = (
            each[np.append(0, r)] for each in (center.first, center.last, center.weight)
        )
        self._price(_Prices(center.task * factor, first * factor, last * factor, weight))

    def improve(self) -> None:
        """Solve the program once, price all batches, and raise the bound.

        Sets `near` when the bound is close to the program's value, `done` when nothing is left to
        gain.
        """
        self._model.run()
        if termination_of(self._model.getModelStatus()) is not Termination.CONVERGED:
            self.near = self.done = True
            return
        value = self._model.getObjectiveValue() * self._scale
        prices = self._proposal()
        smoothed = self._smooth
        if self._center is not None and smoothed:
            pairs = zip(self._center, prices, strict=True)
            prices = _Prices(*(0.3 * old + 0.7 * new for old, new in pairs))
        raised, found = self._price(prices)
        self._smooth = raised
        self._stale = 0 if raised or value < self._value * (1 - 1e-7) else self._stale + 1
        self._value = value
        self.near = value - self.bound <= _NEAR * value
        closed = value - self.bound <= _CLOSED * value or (not found and not smoothed)
        self.done = closed or (self.near and self._stale > _STALE)
        self.near = self.near or self.done

    def _price(self, prices: _Prices) -> tuple[bool, int]:
        """Evaluate prices and add the batches that earn too much; return whether the bound rose,
        and how many.
        """
        prepared = self.at.prepared
        tasks = prepared.tasks
        dear = np.argsort(-prices.task, kind="stable")
        worst = np.array([0.0, 1.0])
        rows: list[Ints] = []
        roles = np.array([prices.weight, prices.first, prices.last])
        count = self._inputs.shape[1]
        classes = self._kernels.Classes(self._ends, self._inputs, self._outputs, self._by_output)
        priced = self._kernels.Prices(dear, prices.task, roles, 1e-9 * self._scale)
        at_once = max(1, _TASKS_PER_CALL // tasks)
        for start in range(0, count, at_once):
            self.budget.check()
            found = np.zeros((at_once, 3), np.int64)
            noticed = self._kernels.price_batches(
                start, min(count, start + at_once), self.at.data, classes, priced, worst, found
            )
            rows.append(found[:noticed])
        total = float(prices.task.sum())
        role_sum = float(self._counts @ (prices.first + prices.last)[: self._ranges])
        shifted, scaled = total + tasks * worst[0], total * worst[1] if total > 0 else -np.inf
        value = float(role_sum + max(shifted, scaled))
        raised = value > self.bound or self._center is None
        if raised:
            task = prices.task * worst[1] if scaled > max(shifted, 0.0) else prices.task
            self._center = prices._replace(task=task)
            self.bound = max(self.bound, value)
        places = np.concatenate(rows)
        if len(places):
            self._write_batches(*self._found(dear, places), prices=prices)
        return raised, len(places)

    def _found(self, dear: Ints, places: Ints) -> tuple[list[Ints], Ints, Ints]:
        """Return the batches found, the dearest tasks that exceed neither class; the task whose
        input each counts as, and its steps of cost and of roles.
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
        """Return the prices that the program proposes."""
        dual = np.maximum(0.0, np.array(self._model.getSolution().row_dual))
        nodes, ranges = len(self._nodes), self._ranges
        free = np.zeros(len(self._ends) - 1)
        # not by a library whose sums depend on threads
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
        infinite, nothing = highspy.kHighsInf, (0, np.zeros(0, np.int32), np.zeros(0))
        model = self._model
        for r in range(self._ranges):
            model.addVar(0.0, infinite)
            model.changeColCost(r, 1.0)
        for held in self._share.sum(axis=0):
            model.addRow(float(held), infinite, *nothing)
        for _ in range(2):
            for r in range(self._ranges):
                model.addRow(0.0, infinite, 1, np.array([r], np.int32), np.ones(1))
        for _ in range(2 * self._ranges):
            model.addRow(1.0, infinite, *nothing)

    def _write_pairs(self) -> None:
        """Keep a node at most as dear as the next ones that exceed it in both lengths."""
        outputs = self._nodes[:, 1]
        for k in range(len(outputs)):
            closest = -1.0
            for j in range(k - 1, -1, -1):
                if closest < outputs[j] <= outputs[k]:
                    closest = float(outputs[j])
                    pair = np.array([j, k], np.int32)
                    self._model.addCol(0.0, 0.0, highspy.kHighsInf, 2, pair, np.array([1.0, -1.0]))

    def _write_plan(self, batches: list[Ints]) -> None:
        """Add a plan's batches with the roles that they play."""
        steps = np.array([self.at.steps[batch].max() for batch in batches])
        first, last = np.zeros((2, len(batches), len(self._ends) - 1))
        times = np.unique(np.concatenate([self._ends, steps]))
        for before, end in itertools.pairwise(times):
            r = int(np.searchsorted(self._ends[1:], end))
            active = np.flatnonzero(steps >= end)
            first[active[0], r] += end - before
            last[active[-1], r] += end - before
        tops = np.array([batch.max() for batch in batches])
        self._write_batches(batches, tops, np.stack([steps, steps]), roles=(first, last))

    def _write_batches(
        self,
        batches: list[Ints],
        tops: Ints,
        steps: Ints,
        prices: _Prices | None = None,
        roles: tuple[Floats, Floats] | None = None,
    ) -> None:
        """Add columns: whose input they count, steps of cost and of roles; roles are given, or
        those that earn.
        """
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
    """Return classes of rising lengths: a task of the least one, the end, the least of the
    others.
    """
    starts = np.flatnonzero(np.diff(lengths, prepend=-1.0))
    if len(starts) > most:
        starts = starts[np.linspace(0, len(starts) - 1, most, dtype=np.int64)]
    ends = np.append(starts[1:], len(lengths))
    return np.stack([tasks[starts], ends, np.minimum.reduceat(others, starts)])


def _nodes(at: Stages) -> tuple[Floats, Floats]:
    """Return nodes (input, output), sorted, and the weight of every node in a task's price: one in
    all.
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
