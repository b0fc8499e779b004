"""The method `rebatching`, which builds a plan by simulating a scheduler with fixed or adaptive
speculation lengths.

An event occurs whenever a task finishes or joins. At each event, the active tasks are divided into
new batches, and an adaptive speculation length is chosen again. Tasks are sorted by the number of
tokens they have reached, in increasing or decreasing order, and batches are contiguous in this
order. For every number of batches and every prefix of the tasks, a dynamic program keeps the
sequence of batches whose verification ends first. New tasks form separate batches in their first
step. Between two events, all batches use the same speculation length. Until the last task has
joined, an adaptive length is the one with the highest throughput, in tokens per second. Afterwards,
a search over partial plans chooses the lengths (see `PhaseBuilder.plan`). Choosing a separate
length for each batch, jointly with the batches or afterwards, brought almost no gain and was
sometimes worse.

The bandwidth shares are optimal for tasks that start together (Eq. 27). For tasks that arrive one
at a time, these shares are scaled up as far as possible, provided that tasks that upload
simultaneously never exceed the total bandwidth.

A task is served as soon as it is ready, and its prompt delays all active tasks. The input of a task
with a smaller bandwidth share arrives later, so the shares determine when tasks are admitted. The
shortest prompts are admitted first, and long prompts are admitted when only a few tasks would be
delayed. Several values of a parameter called patience are tried (see `_admitted`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from specopt.models.continuous_serving.problem import (
    ContinuousServingPlan,
    ContinuousServingProblem,
    Phase,
)
from specopt.models.continuous_serving.steps import ROUNDING
from specopt.models.fields import Floats, Ints, Truths
from specopt.solvers.budget import Budget
from specopt.solvers.continuous_serving.bound import served_bound
from specopt.solvers.continuous_serving.method import (
    ContinuousServingMethod,
    offer_first_plan,
)
from specopt.solvers.continuous_serving.prepare import Prepared
from specopt.solvers.method import Outcome
from specopt.solvers.serving_method import MAX_LENGTHS, able, offer_if_feasible, planned_outputs

MAX_ENDS = 120
"""Maximum number of positions in the sorted task order at which a batch may end. If there are more
tasks, groups of neighbouring tasks stay together.
"""

MAX_BATCHES = 12
"""Maximum number of pipelined batches in a step."""

FEW = 300
"""Number of tasks in a problem up to which new batches are formed every time a task finishes."""

PATIENCE = (0.25, 0.6, 1.0)
"""Values of the patience parameter, each of which yields one plan. The parameter controls when
tasks with long prompts are admitted (see `_admitted`).
"""

STATES = 1000
"""Number of partial plans that are distinguished while the longest output is decoded. If it is
larger, plans are better and take more time to find.
"""

NARROWEST = 0.5
"""Minimum difference between partial plans that are distinguished, in tokens per unfinished task.
If it is smaller, plans for short outputs are better and take more time to find.
"""

FINISHED = 0.02
"""Fraction of the active tasks that must finish before new batches are formed, if the problem has
more than `FEW` tasks.
"""


class State(NamedTuple):
    """A partial plan.

    `clock` is the time at which it ends, and `cost` is its objective so far, summed over all tasks
    if that is the mean latency; both are in seconds. `useful` is the number of tokens gained that
    tasks need, and `gained` is the number that each task has gained. `step` is the next step. The
    last phase begins in the state `before`, with these batches and this speculation length.
    """

    clock: float
    cost: float = 0.0
    useful: float = 0.0
    gained: Any = 0.0
    step: int = 1
    before: State | None = None
    batches: Sequence[Sequence[int]] = ()
    length: int = 0


class PhaseBuilder:
    """A builder that constructs plans by simulating a scheduler one event at a time. Each event
    starts a new phase of the plan.
    """

    def __init__(self, prepared: Prepared, budget: Budget, outputs: Ints, shares: Floats) -> None:
        self.prepared, self.problem, self.shares = prepared, prepared.problem, shares
        self.budget, self.mean_latency = budget, self.problem.objective == "mean_latency"
        self.kernels = budget.load("continuous_serving.online")
        self.server = self.kernels.Server(
            prepared.models, prepared.memory, prepared.runtimes, prepared.overlap
        )
        self.outputs = outputs.astype(np.float64)
        self.needed = self.outputs * (1 - ROUNDING)
        self.inputs = self.problem.input_tokens.astype(np.float64)
        self.tokens = cache(self.problem.tokens_per_step)  # there may be millions of lengths

    def plan(
        self, lengths: Sequence[int], patience: float = math.inf
    ) -> tuple[float, ContinuousServingPlan]:
        """Build a plan. Return a tuple (cost, plan), where `cost` is an estimate of the objective,
        in seconds, summed over all tasks if it is the mean latency.

        Until the last task has joined, the plan switches at every event to the speculation length
        in `lengths` with the highest throughput. From then on, partial plans are extended in the
        order of their useful tokens: by each length, until the next event and until one step
        earlier. Of two partial plans with the same number of unfinished tasks and almost the same
        number of useful tokens, only one is kept. Tokens that the other has in addition are charged
        at the pace of the fastest length.
        """
        tasks = len(self.inputs)
        _, earliest = self.problem.readiness_at(self.prepared.mechanism, self.shares)
        prompt = self._alone(lengths[0], True)
        pace = np.min(
            [self._alone(length, False) / self.tokens(length) for length in lengths], axis=0
        )
        ready, last = np.full(tasks, np.inf), 0.0
        width = max(NARROWEST, float(self.outputs.max()) / STATES)
        state = State(float(earliest.min()), gained=np.zeros(tasks))
        kept: dict[object, State] = {None: state}
        queue: list[tuple[float, int, object, State]] = [(0.0, -1, None, state)]
        numbers, entries = itertools.count(), 0
        while queue:
            *_, key, state = heappop(queue)
            if kept[key] is not state:
                continue
            clock, gained = state.clock, state.gained
            unfinished, waiting = gained < self.needed, ready == np.inf
            if waiting[unfinished].all():
                clock = max(clock, float(earliest[waiting].min()))
            there = waiting & (earliest <= clock * (1 + ROUNDING))
            rest = (self.outputs - gained) * pace
            admitted = _admitted(there, unfinished & ~waiting, prompt, rest, patience)
            # a time within the previous step, so that the task joins the next step despite rounding
            ready[admitted] = np.maximum(earliest[admitted], clock - 0.5 * last)
            waiting[admitted] = False
            active = unfinished & ~waiting
            coming = (waiting & ~there if tasks <= FEW else waiting).any()
            entries += tasks
            self.budget.hold("tasks times phases", 100.0 * entries)
            options = sorted(self._next(active, gained, coming, length) for length in lengths)
            if waiting.any():
                options = options[:1]
            # the pace of a first step does not predict the pace of later steps
            apart = waiting.any() or (gained[active] == 0.0).any()
            weight = np.count_nonzero(unfinished) if self.mean_latency else 1
            over = np.flatnonzero(~unfinished).tolist()
            alone = [[k] for k in np.flatnonzero(waiting).tolist()]
            for _, length, steps, last, batches in options:
                lists = [batches[0] + over, *batches[1:], *alone]
                for count in range(max(1, steps - (len(options) > 1)), steps + 1):
                    had = gained + count * self.tokens(length) * active
                    useful = float(np.minimum(had, self.outputs).sum())
                    until = clock + count * last
                    cost = state.cost + weight * (until - state.clock)
                    left = np.count_nonzero(had < self.needed)
                    key = left and (left, useful // (left * width), apart and (state.step, length))
                    old = kept.get(key)
                    worth = weight * options[0][0]
                    if old and cost - old.cost >= worth * (useful - old.useful):
                        continue
                    kept[key] = State(
                        until, cost, useful, had, state.step + count, state, lists, length
                    )
                    if left:
                        heappush(queue, (useful, next(numbers), key, kept[key]))
        shares = self.shares if patience == math.inf else self._shares(ready)
        return kept[0].cost, self.prepared.plan(_phases(kept[0]), lengths[0], shares)

    def _alone(self, length: int, first: bool) -> Floats:
        """Return the duration of a step of each task alone, in seconds."""
        return np.add(*self.problem.stage_seconds(1, self.inputs, length, first))

    def _shares(self, ready: Floats) -> Floats:
        """Return shares of the bandwidth with which each task arrives when it joins."""
        mechanism = self.prepared.mechanism
        arrival, earliest = self.problem.readiness_at(mechanism, self.shares)
        upload = self.problem.uploads(mechanism, np.ones(len(ready)))
        return np.where(ready > earliest, upload / (ready - arrival), self.shares)

    def _next(
        self, active: Truths, gained: Floats, coming: Any, length: int
    ) -> tuple[float, int, int, float, list[list[int]]]:
        """Return a tuple (pace, length, steps, seconds, batches) for the next phase.

        The pace is given in seconds per token. The phase has `steps` steps until the next event,
        and each of them takes `seconds`.

        If `coming` is true, some tasks have yet to arrive, so every step may be an event.
        """
        self.budget.check()
        reached = self.inputs + gained
        group = np.flatnonzero(active)
        group = group[np.argsort(reached[group], kind="stable")]
        reached, tokens, begins = reached[group], self.tokens(length)[group], gained[group] == 0.0
        steps, ahead = 1, 0.0
        if not coming and not begins.any():
            left = np.ceil((self.needed - gained)[group] / tokens)
            finished = int(FINISHED * len(group)) if len(gained) > FEW else 0
            steps = max(1, int(np.partition(left, finished)[finished]))
            # the mean step represents all steps
            ahead = 0.5 * (steps - 1) * float(tokens.min())
            reached += ahead
        active = self.kernels.Active(reached, reached * begins, begins, np.zeros(len(group)))
        gain = np.minimum((self.outputs - gained)[group], steps * tokens) - ahead
        members, ends = np.zeros((2, len(group)), np.int64)
        seconds, count = self.kernels.form(
            self.server, active, gain, length, MAX_ENDS, MAX_BATCHES, members, ends
        )
        chosen = group[members].tolist()
        cuts = itertools.pairwise([0, *ends[:count].tolist()])
        batches = [chosen[begin:end] for begin, end in cuts]
        return seconds / float(tokens.sum()), length, steps, seconds, batches


@dataclass(frozen=True)
class Rebatching(ContinuousServingMethod):
    """A method that forms new batches whenever a task finishes or joins, and chooses the
    speculation length with the highest throughput.
    """

    name = "rebatching"
    source = "specopt; a dynamic program over the batches at every event"
    guarantee = "a lower bound; the gap is certified, not closed"
    complexity = "O(l_max E K B), E events, B tasks in the largest batch"

    def run(self, problem: ContinuousServingProblem, budget: Budget) -> Outcome:
        """Simulate the scheduler under every mechanism, and return the best plan with a lower
        bound.
        """
        options = able(problem, Prepared)
        for prepared in options:
            offer_first_plan(prepared, budget)
        if (problem.max_speculation_length or 0) <= MAX_LENGTHS:
            budget.improve_bound(_bound(options, budget))
        for prepared in options:
            shares = arrival_shares(prepared)
            for outputs in planned_outputs(problem, (1.0, 0.5)):
                if budget.is_proven(0.0):
                    break
                self._play(PhaseBuilder(prepared, budget, outputs, shares), budget)
        bound = _bound(options, budget) if budget.bound is None else budget.bound
        return Outcome(plan=budget.incumbent, bound=bound)

    def _play(self, builder: PhaseBuilder, budget: Budget) -> None:
        """Build plans with fixed speculation lengths and a plan with adaptive speculation lengths,
        and record them in the budget.

        For many tasks, only the feasible plan with the shortest estimated time is recorded. If
        tasks arrive over time and the objective is the mean latency, plans that delay the admission
        of tasks are also recorded.
        """
        problem, few = builder.problem, builder.problem.tasks <= FEW
        lengths = builder.prepared.lengths
        found: list[tuple[float, ContinuousServingPlan]] = []
        for length in lengths:
            found.append(builder.plan(range(length, length + 1)))
            if len(found) > 2 and found[-1][0] > found[-2][0] > found[-3][0]:
                break
        chosen = lengths[: MAX_LENGTHS if few else len(found)]
        if len(chosen) > 1:
            found.append(builder.plan(chosen))
        apart = problem.arrival_seconds is not None and builder.mean_latency
        for _, plan in sorted(found, key=lambda one: one[0]):
            # estimates of the mean latency are less accurate
            if offer_if_feasible(problem, plan, budget) and not (few and apart):
                break
        for patience in PATIENCE * apart:
            if budget.is_proven(0.0):
                return
            offer_if_feasible(
                problem, builder.plan(chosen if few else lengths[:1], patience)[1], budget
            )


def _phases(state: State) -> list[Phase]:
    """Return the phases of a partial plan in the order of their steps."""
    phases: list[Phase] = []
    while before := state.before:
        parts = tuple(map(tuple, state.batches))
        phases.append(Phase(first_step=before.step, batches=parts, speculation_length=state.length))
        state = before
    return phases[::-1]


def _bound(options: Sequence[Prepared], budget: Budget) -> float:
    """Return a lower bound, in seconds, on the objective of every plan under any mechanism."""
    return min(served_bound(prepared, budget) for prepared in options)


def _admitted(there: Truths, active: Truths, prompt: Floats, rest: Floats, patience: float) -> Ints:
    """Return the waiting tasks that should join the next step, in order of increasing duration of
    their first step.

    If a task is admitted only after n active tasks have finished, then every waiting task is
    delayed, but the n active tasks are not delayed by the task's prompt. Tasks are admitted in
    order until, for some n, the total time saved by the n active tasks exceeds `patience` times the
    total delay. Admitted tasks count as active. If no task is active, at least one task is
    admitted.

    Parameters
    ----------
    there, active
        Whether each task is waiting to be admitted, and whether it is being served.
    prompt, rest
        Duration of each task's first step and total duration of its remaining steps, in seconds, if
        the task is served alone.
    patience
        Factor by which the total delay of the waiting tasks is multiplied. If the factor is
        smaller, tasks wait longer. If it is infinite, all waiting tasks are admitted.
    """
    waiting = np.flatnonzero(there)
    waiting = waiting[np.argsort(prompt[waiting], kind="stable")]
    if patience == math.inf:
        return waiting
    served = active.copy()
    for place, task in enumerate(waiting):
        left = np.sort(rest[served])
        least = (left / np.arange(1, len(left) + 1)).min(initial=np.inf)
        if prompt[task] > patience * least * len(waiting):
            return waiting[:place]
        served[task] = True
    return waiting


def arrival_shares(prepared: Prepared) -> Floats:
    """Return bandwidth shares of the tasks that are proportional to the optimal shares (Eq. 27),
    each at most 1.

    If tasks arrive at different times, the shares are scaled up as far as possible without ever
    exceeding the total bandwidth.
    """
    problem = prepared.problem
    if problem.arrival_seconds is None:
        return prepared.shares
    low, high = 1.0, float(1.0 / prepared.shares.min())
    for _ in range(40):
        middle = float(np.sqrt(low * high))
        shares = np.minimum(1.0, middle * prepared.shares)
        low, high = (
            (middle, high)
            if problem.max_total_share(prepared.mechanism, shares) <= 1.0
            else (low, middle)
        )
    return np.minimum(1.0, low * prepared.shares)
