r"""Prices of tokens that no step of serving can beat, from a linear program: a bound if batches may
change at any step.

Let a task k earn pi_k(g) >= 0 for the token that takes it past g, and q_k >= 0 for its first step.
If every step that a plan can take lasts at least as long as its tasks earn in it,

    t >= sum over the tasks served of                                                    (1)
         (integral of pi_k from g_k to g_k + L(alpha_k, l)) + q_k in a first step,

then finishing a set J of tasks takes at least the sum over J of the integral of pi_k up to Q_k, and
q_k, idle time apart. That holds for lengths as they are reached, for speculation lengths that
change from batch to batch and from step to step, and for arrivals. A last step that is cut off
after some run is a step of fewer runs.

What a step takes
-----------------
Let runs m = 1..M be served in this order, d_m and v_m their stage times. Eq. 20 says that the step
lasts max over points p of (d_1 + ... + d_p) + (v_p + ... + v_M): at least any mixture of these with
weights mu_p >= 0, sum 1. A run with tasks k and speculation length l takes d_m >= l h + c D_k(l)
summed over its tasks, with any one piece (c, h) of the runtime. So does v_m: padding and regrouping
only add. Weights on pieces at a point, no more than mu_p in sum, make both sides linear in them.
Steps of many runs have weights at the first and the last one only: those in between are charged
least. Without overlap every run is charged both in full.

Memory holds b times the longest of a run: at least the sum over its tasks of what each alone takes,
m_k as a share. So M runs have sum m_k <= M (tau_M is the price of that), and many runs pay overhead
for at least sum m_k.

Reached to rounding
-------------------
The judge lets a task go that lacks 1e-12 of its tokens, max(Q_k, L) times that: where acceptance is
next to 1, a step of 2 - 1e-13 tokens finishes one of 2. It lets one begin 1e-12 before it is ready,
and memory be missed by 1e-9. So Q_k stands for what a task cannot do without, `SHORT` less, in
every sum and in the question which tasks may end with the first step. The time at which one is
ready is so much earlier, and a limit on memory is as large as the judge takes it.

Prices
------
Then (1) holds if for every M there are weights whose overhead is at least M tau_M plus a sum over
all tasks. Its terms are the positive parts of earned, less charged at the cheapest place,
speculation length and progress, less tau_M m_k. Prices, q, weights, tau are the variables; what is
maximised is what the tasks of the problem earn. Tasks are priced in groups that are alike in tokens
needed. In each, a price is a straight line between the shortest and the longest prompt, and between
`KNOTS` points of progress, rising from each to the next. So are charges and m_k, which depend on
I_k + g_k alone; where the condition holds at the ends it holds in between. (A first step bends with
the prompt: what lies below the line, q (b - a)^2 / 4 at most, is taken off.) A price changes
L(l_max) tokens after the cost does, so that no step earns more than the price at its own progress
allows. What the solver returns is scaled down until (1) holds as checked here.

Without arrivals all first steps are one step, charged apart: at least the drafting, or the
verification, or any mixture, of all prompts. With arrivals, what tasks earn fits one machine that
may interrupt any of them. The j-th task to finish ends no earlier than there with the shortest rest
first, which has ended most by every time.
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
"""Runs of one step that have weights of their own, at most; of more, the first and the last one
have.
"""

MORE_RUNS = 4
"""Runs that have weights of their own beyond those that memory asks for halfway."""

KNOTS = 2
"""Points of progress with prices of their own; at least two."""

GROUPS = 80
"""Groups of tasks by tokens needed, at most, times the runs that have weights; of each, a part by
acceptance.
"""

PARTS = 2
"""Parts of a group by acceptance, at most."""

LESS = 1e-9
"""Part of the prices that is taken off for the rounding of their sums."""

SHORT = 4 * ROUNDING
"""Relative: by how much a length or a clock may be short of what it must reach; the judge's part,
and that of sums.
"""

_BYTES_PER_COST = 1e5  # of the costs of speculation lengths for a group of tasks, roughly
_SECONDS_PER_PAIR = 1.2e-5  # of speculation lengths, roughly


@dataclass(frozen=True)
class Sort:
    """Steps of one sort, and how their time is counted: by weights of entries, a piece of a runtime
    at a point each.

    Parameters
    ----------
    runs
        Number of runs; a lower limit where `limited` is false.
    limited
        Whether the number of runs is fixed.
    lengths
        Places of the speculation lengths that a run can have.
    point, drafts, slope
        Of each entry: its point, whether it counts drafting, and the seconds per operation.
    overhead, share
        Of each entry: seconds for all runs, and seconds per memory full of tasks.
    charged
        Whether an entry counts the work of a run, shape (places of runs, entries).
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
        """Which entries are of a point and stage, shape (2 x points, entries)."""
        points = np.arange(self.point.max() + 1)
        return (
            np.concatenate(
                [(self.point == points[:, None]) & (self.drafts == stage) for stage in (0, 1)]
            )
            * 1.0
        )

    def allowed(self, weights: Floats) -> Floats:
        """Return weights that are no more than one, the larger stage of every point taken
        together.
        """
        largest = (self.parts @ weights).reshape(2, -1).max(axis=0)
        return weights / max(1.0, float(largest.sum()))


def sorts(prepared: PreparedServing, weighed: int) -> list[Sort]:
    """Return all sorts of steps; those of up to so many runs have weights at every one."""
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
        )  # between two, no place is cheaper
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
    """Return operations of drafting and verifying a step, shape (tasks, lengths); first ones take
    prompts.
    """
    token, pair, logit = prepared.models[0]
    verify_token, verify_pair, verify_logit = prepared.models[1]
    drafts, verifies, draft = [], [], np.zeros_like(reached)
    for length in prepared.served_lengths:  # 0 or 1 and all that follow
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
    """Prices of tokens and of first steps for one problem under one mechanism; zero until `solve`.

    Parameters
    ----------
    prepared
        The problem; tasks stay in its sorted order here.
    apart
        Whether tasks arrive one by one, so that their first steps are many steps.
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
        drafting = kv_draft / free_draft if prepared.least_length else 0.0  # else it may be spared
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
        # A type is what the tasks at an end of a group can be: so far on, or new.
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
        )  # prompts in between take less than in proportion
        self.draft -= np.outer(bent, np.sign(prepared.served_lengths) * prepared.models[0, 1])
        self.verify -= bent[:, None] * prepared.models[1, 1]
        self.memory = reached * self.memory_per_token

        self.sorts = sorts(prepared, self.weighed)
        self.weights = [np.zeros(len(sort.point)) for sort in self.sorts]
        self.tau = np.zeros(len(self.sorts))
        self.price, self.first = np.zeros(len(cells)), np.zeros(2 * groups)

    def _groups(self) -> Ints:
        """Return the group of each task: alike in tokens needed, prompt and acceptance."""
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
        """Return the sums of values of tasks, shape (tasks, ...), at both ends of every group."""
        found = np.zeros((len(self.top), 2, *values.shape[1:]))
        for end, share in enumerate((1.0 - self.share, self.share)):
            np.add.at(found[:, end], self.group, (values.T * share).T)
        return found.reshape(-1, *values.shape[1:])

    def between(self, values: Floats) -> Floats:
        """Return the values of tasks, given those at both ends of every group, shape (ends,
        ...).
        """
        low, high = values[2 * self.group], values[2 * self.group + 1]
        return np.asarray(((1.0 - self.share) * low.T + self.share * high.T).T)

    def stretches(self, outputs: Floats) -> Floats:
        """Return how many of a task's tokens have the price of each knot, shape (tasks, knots)."""
        width = self.top[self.group] / (KNOTS - 1)
        found = np.zeros((len(outputs), KNOTS))
        found[:, 0] = np.minimum(outputs, self.step)
        for knot in range(KNOTS - 1):
            part = np.clip((outputs - self.step) / width - knot, 0.0, 1.0)
            found[:, knot] += width * (part - 0.5 * part**2)
            found[:, knot + 1] += width * 0.5 * part**2
        return found

    def charges(self, sort: Sort) -> Floats:
        """Return the charges of the entries, shape (places, lengths, types, entries)."""
        done = np.where(
            sort.drafts, self.draft.T[sort.lengths, :, None], self.verify.T[sort.lengths, :, None]
        )
        own = sort.charged[:, None, None, :] * (done * sort.slope)
        return np.asarray(own + self.memory[:, None] * sort.share)

    # ------------------------------------------------------------------ the linear program

    def solve(self, budget: Budget) -> None:
        """Set the prices; they stay zero where time is out, or nothing takes any."""
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
        )  # of the part of the price that a knot adds
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
        """Return the rows of a sort of steps: in prices and first steps, in its own variables, and
        their limits.

        Its variables: weights, the most of each point, tau, and what each group earns too much.
        """
        charges = self.charges(sort) / unit
        rows, groups, parts = charges[..., 0].size, len(self.count), sort.parts
        points = len(parts) // 2
        shared = np.zeros((rows + 2 + len(parts), len(self.price) + groups))
        gain = np.broadcast_to(self.gain.T[sort.lengths], charges.shape[:3]).ravel()
        cell = np.tile(self.cell, rows // len(self.cell))
        for back in range(KNOTS):  # its price is what its knot and those before add
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
        """Turn the solver's solution, in units, into prices that hold."""
        price, first, tau = (unit * part for part in (self.price, self.first, self.tau))
        for less in (
            0.0,
            *np.logspace(-14, 0, 15),
        ):  # nothing is left of them in the end, and that holds
            self.price, self.first, self.tau = ((1.0 - less) * part for part in (price, first, tau))
            if self.holds():
                break
        self.price, self.first, self.tau = (
            (1.0 - LESS) * part for part in (self.price, self.first, self.tau)
        )

    def holds(self) -> bool:
        """Return whether no step earns more than it takes, whatever it serves."""
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
        """Return the earnings of the tokens of tasks of these output lengths (sorted order), and
        apart their first steps.
        """
        price = self.between(self.price.reshape(-1, KNOTS))
        earned = (price * self.stretches(outputs)).sum(axis=1) + self.between(
            self.first
        ) * self.apart
        return np.asarray(earned)

    def makespan(self, outputs: Floats) -> float:
        """Return the least time that tasks that start together take until the last one has
        finished, beside the uploads.
        """
        return max(
            self.opening() + float(self.work(outputs).sum()), float(self.alone(outputs).max())
        )

    def _seconds(self, first: bool) -> list[Floats]:
        """Return the seconds of drafting and verifying a step of each task alone, shape (tasks,
        lengths).
        """
        passes = np.array(self.prepared.served_lengths), 1
        work = operations(self.prepared, self.prepared.inputs, first)
        return [
            np.max([row[0] * done + row[1] * count for row in rows], axis=0)
            for rows, done, count in zip(self.prepared.pieces, work, passes, strict=True)
        ]

    def alone(self, outputs: Floats) -> Floats:
        """Return the least time of each task if no step serves another one, prompts included.

        One that never drafts spares the draft model its prompt; one that does has it taken in,
        sooner or later.
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
        """Return the least time of each task after its first step if no step serves anybody
        else.
        """
        draft, verify = self._seconds(False)
        seconds = ((draft + verify) / self.tokens).min(axis=1)
        return np.asarray(np.maximum(0.0, outputs - self.tokens.max(axis=1)) * seconds)

    def opening(self) -> float:
        """Return by how much a first step of all tasks is longer than their earnings in it, at
        least.
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
    """Return the prices of a problem under this mechanism."""
    lengths = len(prepared.served_lengths)
    budget.hold(
        "max_speculation_length",
        _BYTES_PER_COST * lengths * (4 + min(prepared.tasks, GROUPS // MORE_RUNS)),
    )
    budget.check(_SECONDS_PER_PAIR * lengths**2)
    prices = Prices(prepared, apart)
    prices.solve(budget)
    return prices
