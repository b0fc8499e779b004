r"""Lower bounds on serving times, based on token prices at which no step earns more than its
duration.

The prices solve a linear program. They yield a bound even if batches may change at any step. Let a
task k that has gained g tokens earn pi_k(g) >= 0 for its next token, and let it earn q_k >= 0 for
its first step. Suppose that the duration t of every step that a plan can contain is at least the
earnings of its tasks in the step,

    t >= sum over the tasks served of                                                    (1)
         (integral of pi_k from g_k to g_k + L(alpha_k, l)) + q_k in a first step.

Let Q_k be the number of tokens that task k needs. Then finishing a set J of tasks takes at least
the sum over J of q_k plus the integral of pi_k up to Q_k, not counting idle time. The bound
accounts for contexts that grow with the tokens gained. It also holds if speculation lengths change
from batch to batch and from step to step, and if tasks arrive over time. A last step that ends
after one of its batches is a step with fewer batches.

Duration of a step
------------------
Let runs (batches within a step) m = 1..M be served in this order, with stage times d_m and v_m. By
Eq. 20, the duration of the step is the maximum over points p of (d_1 + ... + d_p) + (v_p + ... +
v_M). This maximum is at least any mixture of these sums with weights mu_p >= 0 that add up to 1.
Let D_k(l) be the number of operations for drafting l tokens of task k. For a run with speculation
length l and any affine piece (c, h) of the runtime, d_m is at least l h plus the sum of c D_k(l)
over the run's tasks k. A similar bound holds for v_m. Both bounds are valid because padding and
regrouping only add time. With weights on the pieces at each point, which add up to at most mu_p,
both sides are linear in the weights. Steps with many runs have weights at the first and the last
run only, and the runs in between are charged the minimum. Without overlap, every run is charged
both stages in full.

Let m_k be the fraction of the memory that task k needs if it is alone. A run of b tasks occupies b
times the memory of its longest task, which is at least the sum of m_k over its tasks. So a step of
M runs satisfies the constraint sum m_k <= M, whose price is tau_M. Steps with many runs are charged
the overhead of at least sum m_k runs.

Rounding tolerances
-------------------
The evaluation of a plan has tolerances. It accepts a task as finished if it lacks at most 1e-12
max(Q_k, L) tokens. For example, with an acceptance rate close to 1, a step of 2 - 1e-13 tokens
finishes a task of 2 tokens. It also accepts that a task begins before it is ready, up to a relative
error of 1e-12. Memory use may exceed a limit by a relative error of up to 1e-9. Therefore, Q_k
denotes the number of tokens that a task needs, reduced by the relative amount `SHORT`, in every sum
and in the test of which tasks may end with the first step. The time at which a task is ready is
reduced by the same factor, and memory limits include the tolerance.

Prices
------
Inequality (1) holds if, for every M, there are weights whose overhead is at least M tau_M plus a
sum over all tasks. Each term is the positive part of the task's earnings minus its charge and minus
tau_M m_k, at the run, speculation length and progress that maximise the term. The variables of the
linear program are the prices, q, the weights and tau. The objective is to maximise the total
earnings of the problem's tasks. Tasks that need similar numbers of tokens are priced as a group.
Within a group, a price is linear between the shortest and the longest prompt. It is also linear
between `KNOTS` points of progress, called knots, and does not decrease from one knot to the next.
Charges and m_k depend only on I_k + g_k, where I_k is the prompt length, and are linear as well. So
if the condition holds at the ends, it holds in between. (The charge of a first step is convex in
the prompt length. Its maximum distance below the straight line, at most q (b - a)^2 / 4, is
subtracted.) Prices lag behind costs by L(l_max) tokens of progress. Since prices do not decrease,
no token of a step then has a higher price than the progress at the start of the step allows. The
solver's solution is scaled down until a check confirms (1).

Without arrivals, the first steps of all tasks are a single step, which is charged separately. Its
duration is at least the time to draft for all prompts, the time to verify them, or any mixture of
the two. With arrivals, the tasks' earnings are treated as the processing times of jobs on one
machine, which may interrupt any job. Serving the job with the shortest remaining time first
completes the most jobs by any point in time. So the j-th task to finish ends no earlier than the
j-th job to finish in that schedule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.continuous_serving.steps import ROUNDING
from specopt.models.errors import OutOfTime
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.serving_method import PreparedServing

MAX_RUNS = 10
"""Maximum number of runs (batches) in a step in which every run has separate weights. In steps with
more runs, only the first and the last run have weights.
"""

MORE_RUNS = 4
"""Number of runs (batches) that have separate weights, beyond the number of runs that are needed to
fit all tasks in memory when half of their outputs are complete.
"""

KNOTS = 2
"""Number of points of progress, called knots, at which prices are defined. There are at least two.
"""

GROUPS = 80
"""Limit on the product of the number of task groups and the number of runs with weights. The tasks
of a group need similar numbers of tokens, and groups are subdivided by acceptance rate.
"""

PARTS = 2
"""Maximum number of parts into which a group of tasks is divided by acceptance rate."""

LESS = 1e-9
"""Fraction by which prices are reduced to cover rounding errors in their sums."""

SHORT = 4 * ROUNDING
"""Relative amount by which a length or a clock may fall short of its target. It covers the
tolerance in the evaluation of a plan and the rounding errors of sums.
"""

_BYTES_PER_COST = 1e5  # for the costs of the speculation lengths of a group of tasks, roughly
_SECONDS_PER_PAIR = 1.2e-5  # per pair of speculation lengths, roughly


@dataclass(frozen=True)
class Sort:
    """A class of steps with the same number of runs, and the weighted entries that bound their
    duration.

    An entry is an affine piece of a runtime at a point. The module docstring defines points and
    runs.

    Parameters
    ----------
    runs
        Number of runs in a step, or a lower bound on this number if `limited` is false.
    limited
        Whether the number of runs is fixed.
    lengths
        Indices of the speculation lengths that a run may use.
    point, drafts, slope
        Point of each entry, whether the entry belongs to the draft stage, and its slope in seconds
        per operation.
    overhead, share
        Overhead of each entry in seconds. `overhead` is the total for the runs that the entry
        counts. `share` is the overhead for tasks that together fill the memory once.
    charged
        Whether an entry includes the work of a run, with shape (positions of runs, entries).
    """

    runs: int
    limited: bool
    lengths: list[int]
    point: Ints
    drafts: Ints
    slope: Floats
    overhead: Floats
    share: Floats
    charged: Floats

    @property
    def parts(self) -> Floats:
        """Indicator matrix that selects the entries of each stage and point, with shape (2 x
        points, entries).
        """
        points = np.arange(self.point.max() + 1)
        return (
            np.concatenate(
                [(self.point == points[:, None]) & (self.drafts == stage) for stage in (0, 1)]
            )
            * 1.0
        )

    def allowed(self, weights: Floats) -> Floats:
        """Scale the weights down if their sum exceeds one, and return them.

        At every point, only the stage with the larger total weight contributes to the sum.
        """
        largest = (self.parts @ weights).reshape(2, -1).max(axis=0)
        return weights / max(1.0, float(largest.sum()))


def sorts(prepared: PreparedServing, weighed: int) -> list[Sort]:
    """Return the classes of steps that the linear program distinguishes.

    In steps of up to `weighed` runs, every run has separate weights.
    """
    overlap, lengths = prepared.overlap, list(prepared.served_lengths)
    pieces = [
        (drafts, *row[:2])
        for drafts, rows in zip((1, 0), prepared.pieces, strict=True)
        for row in rows
    ]

    def sort(runs: int, places: list[int], limited: bool = True) -> Sort:
        points = (
            np.arange(runs) if overlap and runs <= weighed else np.unique([0, (runs - 1) * overlap])
        )
        kinds = (1,) if limited else (1, 0)
        rows = [
            (point, *piece, fixed)
            for point in range(len(points))
            for piece in pieces
            for fixed in kinds
        ]
        point, drafts, slope, height, fixed = (
            np.array(column) for column in zip(*rows, strict=True)
        )
        counted = (
            np.where(drafts, points[point] + 1, runs - points[point])
            if overlap
            else np.full(len(rows), runs)
        )
        run = (
            points[:, None] if len(points) != 2 or runs == 2 else np.ones((1, 1))
        )  # a place between the two is never cheaper
        charged = np.where(drafts, run <= points[point], run >= points[point]) | (not overlap)
        one = np.where(drafts, lengths[places[0]], 1) * height
        share = np.where((fixed == 0) & (counted == runs), one, 0.0)
        overhead = np.where(share > 0.0, 0.0, counted * one)
        return Sort(runs, limited, places, point, drafts, slope, overhead, share, charged * 1.0)

    all_of_them = list(range(len(lengths)))
    alone = [sort(1, [place]) for place in all_of_them]
    return [
        *alone,
        *(sort(runs, all_of_them) for runs in range(2, weighed + 2)),
        sort(weighed + 2, all_of_them, False),
    ]


def operations(prepared: PreparedServing, reached: Floats, first: Any) -> tuple[Floats, Floats]:
    """Return the numbers of operations for drafting and for verification in one step, each with
    shape (tasks, lengths).

    `reached` contains the context length of each task. If `first` is true, the step also processes
    the task's prompt.
    """
    token, pair, logit = prepared.models[0]
    verify_token, verify_pair, verify_logit = prepared.models[1]
    drafts, verifies, draft = [], [], np.zeros_like(reached)
    for length in prepared.served_lengths:  # lengths are consecutive and start at 0 or 1
        if length:
            new = np.where(first, reached, 1.0) if length == 1 else 1.0
            draft = draft + (new * (token + pair * (reached + length - 1)) + logit)
        new = np.where(first, reached, 1.0) + length
        drafts.append(draft)
        verifies.append(
            new * (verify_token + verify_pair * (reached + length)) + verify_logit * (1 + length)
        )
    return np.stack(drafts, axis=1), np.stack(verifies, axis=1)


class Prices:
    """Prices of tokens and of first steps, for one problem under one mechanism.

    All prices are zero until `solve` is called.

    Parameters
    ----------
    prepared
        Problem under one mechanism. All arrays that are indexed by task use its sorted task order.
    apart
        Whether tasks arrive at different times. If so, tasks have separate first steps.
    """

    def __init__(self, prepared: PreparedServing, apart: bool = False) -> None:
        problem = prepared.problem
        self.prepared = prepared
        lengths = prepared.served_lengths
        self.tokens = np.stack(
            [problem.tokens_per_step(length)[prepared.order] for length in lengths], axis=1
        )
        asked = np.array([outputs[prepared.order] for outputs in problem.scenarios], np.float64)
        self.outputs = asked - SHORT * np.maximum(asked, self.tokens.max(axis=1))
        self.apart = apart
        kv_draft, free_draft, kv_verify, free_verify = prepared.memory
        drafting = kv_draft / free_draft if prepared.least_length else 0.0  # 0 if drafts may pause
        self.memory_per_token = max(drafting, kv_verify / free_verify)
        self.step = float(self.tokens.max())
        fulls = float((prepared.inputs + 0.5 * asked.mean(axis=0)).sum()) * self.memory_per_token
        self.weighed = MORE_RUNS + int(min(np.ceil(fulls), MAX_RUNS - MORE_RUNS))
        self.group = self._groups()
        inputs, groups = prepared.inputs, int(self.group.max()) + 1
        low, high, self.top = np.full(groups, np.inf), np.zeros(groups), np.zeros(groups)
        gain = np.zeros((groups, self.tokens.shape[1]))
        np.minimum.at(low, self.group, inputs)
        np.maximum.at(high, self.group, inputs)
        np.maximum.at(self.top, self.group, asked.max(axis=0))
        np.maximum.at(gain, self.group, self.tokens)
        self.share = (inputs - low[self.group]) / np.maximum(high - low, 1.0)[self.group]
        self.count = self.gather(np.ones(len(inputs)))
        # A type is a state of the tasks at an end of a group: a point of progress, or a first step.
        cells = np.arange(2 * groups * KNOTS)
        self.cell = np.append(cells, cells[::KNOTS]) if self.apart else cells
        self.newly = np.arange(len(self.cell)) >= len(cells)
        self.of, knot = np.divmod(self.cell, KNOTS)
        reached = np.stack([low, high], axis=1).ravel()[self.of] + self.top[self.of // 2] * knot / (
            KNOTS - 1
        )
        self.gain = gain[self.of // 2]
        self.draft, self.verify = operations(prepared, reached, self.newly)
        bent = (
            self.newly * 0.25 * (high - low)[self.of // 2] ** 2
        )  # prompts in between cost less than the straight line
        self.draft -= np.outer(bent, np.sign(prepared.served_lengths) * prepared.models[0, 1])
        self.verify -= bent[:, None] * prepared.models[1, 1]
        self.memory = reached * self.memory_per_token

        self.sorts = sorts(prepared, self.weighed)
        self.weights = [np.zeros(len(sort.point)) for sort in self.sorts]
        self.tau = np.zeros(len(self.sorts))
        self.price, self.first = np.zeros(len(cells)), np.zeros(2 * groups)

    def _groups(self) -> Ints:
        """Return the index of the group of each task. Tasks with similar token needs and acceptance
        rates share a group.
        """
        rates = self.tokens[:, -1]
        parts = PARTS if rates.min() < rates.max() else 1
        keys = (self.outputs.mean(axis=0) / self.tokens[:, 0], rates)
        groups = [np.arange(self.prepared.tasks)]
        for key, most in zip(keys, (GROUPS // parts // self.weighed, parts), strict=True):
            groups = [
                part
                for group in groups
                for part in np.array_split(
                    group[np.argsort(key[group], kind="stable")], min(most, len(group))
                )
            ]
        found = np.empty(self.prepared.tasks, np.int64)
        for number, group in enumerate(groups):
            found[group] = number
        return found

    def gather(self, values: Floats) -> Floats:
        """Divide the values of tasks between the ends of their groups, and return the total at
        every end.

        `values` has shape (tasks, ...). The ends of a group are its shortest and its longest
        prompt, and the value of a task is divided between them by linear interpolation.
        """
        found = np.zeros((len(self.top), 2, *values.shape[1:]))
        for end, share in enumerate((1.0 - self.share, self.share)):
            np.add.at(found[:, end], self.group, (values.T * share).T)
        return found.reshape(-1, *values.shape[1:])

    def between(self, values: Floats) -> Floats:
        """Interpolate values that are given at the ends of groups, and return a value for each
        task.

        `values` has shape (ends, ...). The ends of a group are its shortest and its longest prompt.
        """
        low, high = values[2 * self.group], values[2 * self.group + 1]
        return np.asarray(((1.0 - self.share) * low.T + self.share * high.T).T)

    def stretches(self, outputs: Floats) -> Floats:
        """Return how many tokens of each task are priced at each knot, with shape (tasks, knots).

        Knots are the points of progress at which prices are defined.
        """
        width = self.top[self.group] / (KNOTS - 1)
        found = np.zeros((len(outputs), KNOTS))
        found[:, 0] = np.minimum(outputs, self.step)
        for knot in range(KNOTS - 1):
            part = np.clip((outputs - self.step) / width - knot, 0.0, 1.0)
            found[:, knot] += width * (part - 0.5 * part**2)
            found[:, knot + 1] += width * 0.5 * part**2
        return found

    def charges(self, sort: Sort) -> Floats:
        """Return the amount that each entry of `sort` charges for a task, as an array of shape
        (run positions, lengths, task types, entries).

        Each task type combines the end of a group with either a knot or a first step.
        """
        done = np.where(
            sort.drafts, self.draft.T[sort.lengths, :, None], self.verify.T[sort.lengths, :, None]
        )
        own = sort.charged[:, None, None, :] * (done * sort.slope)
        return np.asarray(own + self.memory[:, None] * sort.share)

    # ------------------------------------------------------------------ the linear program

    def solve(self, budget: Budget) -> None:
        """Solve the linear program for the prices. The prices remain zero if time runs out or if
        steps have no duration.
        """
        unit = float((sum(self._seconds(False)) / self.tokens).min(axis=1).max())
        if unit == 0.0:
            return
        try:
            optimize, sparse = (
                budget.load_library("scipy.optimize"),
                budget.load_library("scipy.sparse"),
            )
            budget.check()
        except OutOfTime:
            return
        shared, own, limits = zip(*(self._block(sort, unit) for sort in self.sorts), strict=True)
        matrix = sparse.hstack(
            [
                sparse.vstack([*map(sparse.csr_array, shared)]),
                sparse.block_diag([*map(sparse.csr_array, own)]),
            ]
        ).tocsr()
        amounts = self.gather(
            np.mean([self.stretches(outputs) for outputs in self.outputs], axis=0)
        )
        worth = np.zeros(matrix.shape[1])
        worth[: amounts.size] = (
            amounts[:, ::-1].cumsum(axis=1)[:, ::-1].ravel()
        )  # coefficient of the price increment at each knot
        worth[amounts.size : amounts.size + len(self.count)] = self.count * self.apart
        time_limit = min(budget.remaining, 1e9)
        found = optimize.linprog(
            -worth, matrix, np.concatenate(limits), options={"time_limit": time_limit}
        ).x
        if found is None:
            return
        found = np.maximum(found, 0.0)
        self.price, self.first, rest = np.split(
            found, [amounts.size, amounts.size + len(self.count)]
        )
        self.price = self.price.reshape(amounts.shape).cumsum(axis=1).ravel()
        for number, (sort, part) in enumerate(zip(self.sorts, own, strict=True)):
            mine, rest = np.split(rest, [part.shape[1]])
            self.weights[number] = sort.allowed(mine[: len(sort.point)])
            self.tau[number] = mine[len(sort.point) + sort.point.max() + 1]
        self._scale(unit)

    def _block(self, sort: Sort, unit: float) -> tuple[Any, Any, Floats]:
        """Build the constraint rows for a class of steps.

        Return a tuple (shared, own, limits): two coefficient matrices and the right-hand sides. The
        first matrix is for the prices of tokens and first steps. The second matrix is for the
        variables of this class alone: the weights, the maximum at each point, tau, and the excess
        earnings of each group end.
        """
        charges = self.charges(sort) / unit
        rows, groups, parts = charges[..., 0].size, len(self.count), sort.parts
        points = len(parts) // 2
        shared = np.zeros((rows + 2 + len(parts), len(self.price) + groups))
        gain = np.broadcast_to(self.gain.T[sort.lengths], charges.shape[:3]).ravel()
        cell = np.tile(self.cell, rows // len(self.cell))
        for back in range(KNOTS):  # the price at a knot is the sum of the increments up to the knot
            some = cell % KNOTS >= back
            shared[np.flatnonzero(some), cell[some] - back] = gain[some]
        of, newly = (np.tile(column, rows // len(self.of)) for column in (self.of, self.newly))
        shared[np.flatnonzero(newly), len(self.price) + of[newly]] = 1.0
        memory = np.tile(self.memory, rows // len(self.memory))[:, None] * sort.limited
        own = np.block(
            [
                [
                    -charges.reshape(rows, -1),
                    np.zeros((rows, points)),
                    -memory,
                    -np.eye(groups)[of],
                ],
                [-sort.overhead / unit, np.zeros(points), float(sort.runs), self.count],
                [parts, -np.tile(np.eye(points), (2, 1)), np.zeros((len(parts), 1 + groups))],
                [0.0 * sort.overhead, np.ones(points), 0.0, np.zeros(groups)],
            ]
        )
        return shared, own, np.append(np.zeros(len(own) - 1), 1.0)

    def _scale(self, unit: float) -> None:
        """Convert the solver's solution, in multiples of `unit`, to prices in seconds that satisfy
        inequality (1).
        """
        price, first, tau = (unit * part for part in (self.price, self.first, self.tau))
        for less in (
            0.0,
            *np.logspace(-14, 0, 15),
        ):  # the last factor leaves zero prices, which always hold
            self.price, self.first, self.tau = ((1.0 - less) * part for part in (price, first, tau))
            if self.holds():
                break
        self.price, self.first, self.tau = (
            (1.0 - LESS) * part for part in (self.price, self.first, self.tau)
        )

    def holds(self) -> bool:
        """Return whether the prices satisfy inequality (1), which states that no step earns more
        than its duration.
        """
        for sort, weights, tau in zip(self.sorts, self.weights, self.tau, strict=True):
            earned = (
                self.gain.T[sort.lengths] * self.price[self.cell] + self.newly * self.first[self.of]
            )
            spared = self.memory * (tau * sort.limited)
            excess = np.zeros(len(self.count))
            np.maximum.at(
                excess, self.of, (earned - self.charges(sort) @ weights - spared).max(axis=(0, 1))
            )
            if excess @ self.count + tau * sort.runs * sort.limited > sort.overhead @ weights:
                return False
        return True

    # ------------------------------------------------------------------ consequences

    def work(self, outputs: Floats) -> Floats:
        """Return the total earnings of each task in seconds.

        `outputs` contains the output lengths of the sorted tasks. If tasks arrive at different
        times, the earnings include those of first steps.
        """
        price = self.between(self.price.reshape(-1, KNOTS))
        earned = (price * self.stretches(outputs)).sum(axis=1) + self.between(
            self.first
        ) * self.apart
        return np.asarray(earned)

    def makespan(self, outputs: Floats) -> float:
        """Return a lower bound, in seconds, on the makespan of tasks that all start together.
        Uploads are not included.
        """
        return max(
            self.opening() + float(self.work(outputs).sum()), float(self.alone(outputs).max())
        )

    def _seconds(self, first: bool) -> list[Floats]:
        """Return the draft times and the verify times of one step, for each task served alone.

        Both arrays are in seconds and have shape (tasks, lengths). If `first` is true, the step is
        the task's first step.
        """
        passes = np.array(self.prepared.served_lengths), 1
        work = operations(self.prepared, self.prepared.inputs, first)
        return [
            np.max([row[0] * done + row[1] * count for row in rows], axis=0)
            for rows, done, count in zip(self.prepared.pieces, work, passes, strict=True)
        ]

    def alone(self, outputs: Floats) -> Floats:
        """Return the minimum time, in seconds, to serve each task, including its prompt, if it is
        alone in every step.

        If a task never uses drafts, the draft model does not process its prompt. Otherwise, the
        draft model processes the prompt in one of the steps.
        """
        (draft, verify), (first_draft, first_verify) = self._seconds(False), self._seconds(True)
        tokens, pauses = (draft + verify) / self.tokens, self.prepared.served_lengths[0] == 0
        found = outputs * tokens.min(axis=1) + (first_draft - draft)[:, pauses:].min(
            axis=1, initial=math.inf
        )
        if pauses:
            found = np.minimum(found, outputs * tokens[:, 0])
        return np.asarray(found + (first_verify - verify).min(axis=1))

    def later(self, outputs: Floats) -> Floats:
        """Return the minimum time, in seconds, that each task needs after its first step if it is
        alone in every step.
        """
        draft, verify = self._seconds(False)
        seconds = ((draft + verify) / self.tokens).min(axis=1)
        return np.asarray(np.maximum(0.0, outputs - self.tokens.max(axis=1)) * seconds)

    def opening(self) -> float:
        """Return a lower bound on the duration of the first step of all tasks together, minus the
        earnings of the tasks in that step. The result is in seconds.
        """
        runs = max(1.0, float(self.prepared.inputs.sum()) * self.memory_per_token)
        work = operations(self.prepared, self.prepared.inputs, True)
        passes = self.prepared.served_lengths[0], 1
        least, more = [], []
        for rows, done, count in zip(self.prepared.pieces, work, passes, strict=True):
            shortest = float(done[:, 0].sum())
            least.append(max(a * shortest + runs * count * height for a, height, _ in rows))
            more.append(rows[0, 0] * (done - done[:, :1]))
        earned = self.tokens * self.between(self.price[::KNOTS])[:, None]
        found = 0.0
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            x, y = (share, 1.0 - share) if self.prepared.overlap else (1.0, 1.0)
            rest = (x * more[0] + y * more[1] - earned).min(axis=1)
            found = max(found, x * least[0] + y * least[1] + float(rest.sum()))
        return found * (1.0 - LESS)


def solved_prices(prepared: PreparedServing, budget: Budget, apart: bool = False) -> Prices:
    """Create the prices for a problem under one mechanism, solve the linear program within the
    budget, and return the prices.
    """
    lengths = len(prepared.served_lengths)
    budget.hold(
        "max_speculation_length",
        _BYTES_PER_COST * lengths * (4 + min(prepared.tasks, GROUPS // MORE_RUNS)),
    )
    budget.check(_SECONDS_PER_PAIR * lengths**2)
    prices = Prices(prepared, apart)
    prices.solve(budget)
    return prices
