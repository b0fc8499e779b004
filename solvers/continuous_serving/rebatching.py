"""The method `rebatching`, which builds a plan by simulating a scheduler with fixed or adaptive
speculation lengths.

An event occurs whenever a task finishes or joins. At each event, the active tasks are divided into
new batches, and an adaptive speculation length is chosen again. Tasks are sorted by the number of
tokens they have reached, in increasing or decreasing order, and batches are contiguous in this
order. For every number of batches and every prefix of the tasks, a dynamic program keeps the
sequence of batches whose verification ends first. New tasks form separate batches in their first
step. Between two events, all batches use the same speculation length. An adaptive length is the one
with the highest throughput, in tokens per second, until the next event. Choosing a separate length
for each batch, jointly with the batches or afterwards, brought almost no gain and was sometimes
worse.

The bandwidth shares are optimal for tasks that start together (Eq. 27). For tasks that arrive one
at a time, these shares are scaled up as far as possible, provided that tasks that upload
simultaneously never exceed the total bandwidth.

A task is served as soon as it is ready, and its prompt delays all active tasks. The input of a task
with a smaller bandwidth share arrives later, so the shares determine when tasks are admitted. The
shortest prompts are admitted first, and long prompts are admitted when only a few tasks would be
delayed. Several values of a parameter called patience are tried (see `_admitted`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

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

FINISHED = 0.02
"""Fraction of the active tasks that must finish before new batches are formed, if the problem has
more than `FEW` tasks.
"""


class PhaseBuilder:
    """A builder that constructs plans by simulating a scheduler one event at a time. Each event
    starts a new phase of the plan.
    """

    def __init__(self, prepared: Prepared, budget: Budget, outputs: Ints, shares: Floats) -> None:
        self.prepared, self.problem, self.shares = prepared, prepared.problem, shares
        self.kernels = budget.load("continuous_serving.online")
        self.server = self.kernels.Server(
            prepared.models, prepared.memory, prepared.runtimes, prepared.overlap
        )
        self.outputs = outputs.astype(np.float64)
        self.inputs = self.problem.input_tokens.astype(np.float64)
        self.entries = 0  # in the phases of all plans
        self.tokens = cache(self.problem.tokens_per_step)  # there may be millions of lengths

    def plan(
        self, lengths: Sequence[int], budget: Budget, patience: float = math.inf
    ) -> tuple[float, ContinuousServingPlan]:
        """Build a plan. Return a tuple (seconds, plan), where `seconds` is an estimate of the total
        decoding time.

        At every event, the plan switches to the speculation length in `lengths` with the highest
        throughput.
        """
        tasks, mechanism = len(self.inputs), self.prepared.mechanism
        arrival, earliest = self.problem.readiness_at(mechanism, self.shares)
        prompt = np.add(*self.problem.stage_seconds(1, self.inputs, lengths[0], True))
        alone = [
            np.add(*self.problem.stage_seconds(1, self.inputs, length, False)) / self.tokens(length)
            for length in lengths
        ]
        gained = np.zeros(tasks)
        ready = np.full(tasks, np.inf)
        served = np.zeros(tasks, np.bool_)
        unfinished = np.ones(tasks, np.bool_)
        clock, step, total, last = float(earliest.min()), 1, 0.0, 0.0
        phases: list[Phase] = []
        while unfinished.any():
            waiting = ready == np.inf
            there = waiting & (earliest <= clock * (1 + ROUNDING))
            rest = (self.outputs - gained) * np.min(alone, axis=0)
            admitted = _admitted(there, unfinished & ~waiting, prompt, rest, patience)
            # a time within the previous step, so that the task joins the next step despite rounding
            ready[admitted] = np.maximum(earliest[admitted], clock - 0.5 * last)
            waiting[admitted] = False
            active = unfinished & ~waiting
            if not active.any():
                clock, last = float(earliest[waiting].min()), 0.0
                continue
            coming = waiting & ~there if tasks <= FEW else waiting
            options = []
            for length in lengths:
                budget.check()
                steps, seconds, batches = self._next(
                    active, served, gained, bool(coming.any()), length
                )
                worth = seconds / (steps * float(self.tokens(length)[active].mean()))
                options.append((worth, steps, seconds, length, batches))
            _, steps, seconds, length, batches = min(options, key=lambda option: option[0])
            total += seconds
            over = np.flatnonzero(~unfinished)
            lists = [batch.tolist() for batch in batches] + [
                [k] for k in np.flatnonzero(waiting).tolist()
            ]
            lists[0] += over.tolist()
            self.entries += tasks
            budget.hold("tasks times phases", 100.0 * self.entries)
            phases.append(
                Phase(first_step=step, batches=tuple(map(tuple, lists)), speculation_length=length)
            )
            runs = [(batch, length) for batch in batches]
            for n in range(steps if waiting.any() else 0):
                before = gained + n * self.tokens(length)
                last = self.prepared.step_ends(runs, before, ~served)[-1]
                clock += last
            gained[active] += steps * self.tokens(length)[active]
            served |= active
            unfinished &= gained < self.outputs * (1 - ROUNDING)
            step += steps
        shares = self.shares
        if patience < math.inf:
            upload = self.problem.uploads(mechanism, np.ones(tasks))
            shares = np.where(ready > earliest, upload / (ready - arrival), shares)
        return total, self.prepared.plan(phases, lengths[0], shares)

    def _next(
        self, active: Any, served: Any, gained: Floats, coming: bool, length: int
    ) -> tuple[int, float, list[Ints]]:
        """Return a tuple (steps, seconds, batches): the number of steps until the next event, their
        total duration, and the batches.

        While some tasks have yet to arrive, every step may be an event.
        """
        old, new = np.flatnonzero(active & served), np.flatnonzero(active & ~served)
        tokens = self.tokens(length)
        steps = 1
        if not len(new) and not coming:
            left = np.ceil((self.outputs[old] * (1 - ROUNDING) - gained[old]) / tokens[old])
            finished = int(FINISHED * len(old)) if len(self.inputs) > FEW else 0
            steps = max(1, int(np.partition(left, finished)[finished]))
        seconds, batches = 0.0, []
        for group, first in ((old, False), (new, True)):
            if len(group):
                gain = np.minimum(self.outputs[group] - gained[group], steps * tokens[group])
                reached = self.inputs[group] + gained[group]
                took, formed = self.form(reached, gain, length, steps, first)
                seconds += took
                batches += [group[batch] for batch in formed]
        return steps, seconds, batches

    def form(
        self, reached: Floats, gain: Floats, length: int, steps: int, first: bool
    ) -> tuple[float, list[Ints]]:
        """Form batches of tasks. Return the total duration of several steps, in seconds, and the
        batches in pipeline order.

        Parameters
        ----------
        reached, gain
            Number of tokens that each task has reached before the steps, and the maximum number of
            tokens that it gains during the steps.
        length, steps, first
            Number of draft tokens per step, number of steps, and whether this is the first step of
            the tasks.
        """
        order = np.argsort(reached, kind="stable")
        count = len(order)
        # the mean step represents all steps
        ahead = 0.0
        if not first:
            ahead = 0.5 * (steps - 1) * float(self.tokens(length).min())
        middle = reached[order] + ahead
        active = self.kernels.Active(middle, middle, np.full(count, first), np.zeros(count))
        slot = np.zeros(count, np.int64)
        seconds = self.kernels.form(
            self.server, active, gain[order] - ahead, length, first, MAX_ENDS, MAX_BATCHES, slot
        )
        return seconds * steps, [order[slot == place] for place in range(int(slot.max()) + 1)]


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
            found.append(builder.plan(range(length, length + 1), budget))
            if len(found) > 2 and found[-1][0] > found[-2][0] > found[-3][0]:
                break
        if len(lengths) > 1:
            found.append(builder.plan(lengths[: MAX_LENGTHS if few else len(found)], budget))
        for _, plan in sorted(found, key=lambda one: one[0]):
            if offer_if_feasible(problem, plan, budget) and not few:
                break
        if problem.arrival_seconds is not None and problem.objective == "mean_latency":
            for patience in PATIENCE:
                if budget.is_proven(0.0):
                    return
                _, plan = builder.plan(lengths[: MAX_LENGTHS if few else 1], budget, patience)
                offer_if_feasible(problem, plan, budget)


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
