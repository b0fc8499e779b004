"""A method that finds optimal plans by dynamic programming over decoding steps.

At every step, the method considers every ordered partition of the tasks into batches, and every
speculation length for every batch. Problems with arrivals are not supported, so all tasks begin
together, and every unfinished task is served in every step. The remaining latency depends on the
past only through the number of steps that each task has had at each speculation length. If
regrouping tasks has a cost, the remaining latency also depends on the batches of the previous step.

The objective is a sum over steps. Each step adds its duration to the makespan. For the mean
latency, a step adds its duration to the latency of every task that continues. For a task that
finishes, the step adds the completion time of the task's batch to the latency of the task. The
method makes no assumptions about batches, so the other methods are tested against it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from specopt.models.acceptance import decoding_steps
from specopt.models.continuous_serving.problem import (
    ContinuousServingPlan,
    ContinuousServingProblem,
    Phase,
)
from specopt.models.continuous_serving.steps import ROUNDING
from specopt.models.fields import Floats
from specopt.solvers.budget import Budget
from specopt.solvers.continuous_serving.method import (
    ALWAYS_DRAFTING,
    TOGETHER,
    ContinuousServingMethod,
)
from specopt.solvers.continuous_serving.prepare import Prepared
from specopt.solvers.method import Outcome, at_most
from specopt.solvers.serving_method import GIVEN, able

Counts = tuple[tuple[int, ...], ...]  # by task, the number of steps at each speculation length
Partition = tuple[tuple[int, ...], ...]
Choice = tuple[Partition, tuple[int, ...]]  # batches in order, with their speculation lengths


@dataclass(frozen=True)
class EveryStep(ContinuousServingMethod):
    """A dynamic program over all ordered partitions into batches and all speculation lengths at
    every step.
    """

    name = "every-step"
    exact = True
    source = "specopt; dynamic programming over the tokens that tasks have gained"
    guarantee = "optimal"
    complexity = "O(l_max^K a(K)) per state, a(K) ordered partitions: 13 for K = 3, 75 for K = 4"
    max_size = 4
    takes = (
        TOGETHER,
        GIVEN,
        ALWAYS_DRAFTING,
        at_most(
            3000,
            "states",
            lambda method, problem: _states(problem),
            "fewer outputs or speculation lengths",
        ),
        # the search recurses once per step, and Python limits the recursion depth
        at_most(400, "decoding steps", lambda method, problem: _steps(problem), "fewer outputs"),
    )

    def run(self, problem: ContinuousServingProblem, budget: Budget) -> Outcome:
        """Solve the problem under each mechanism separately, and return the best plan."""
        options = able(problem, Prepared)
        for prepared in options:
            budget.offer(
                _plan(
                    prepared, [(tuple((k,) for k in range(problem.tasks)), (prepared.lengths[0],))]
                )
            )
        bound = math.inf
        for prepared in options:
            search = _Search(prepared, budget)
            seconds, choices = search.least(search.start, None)
            budget.offer(_plan(prepared, choices))
            bound = min(bound, seconds + prepared.communication_seconds)
        return Outcome(plan=budget.incumbent, bound=bound)


def _states(problem: ContinuousServingProblem) -> float:
    """Estimate the number of states of the dynamic program.

    A state contains, for each task, the number of steps taken at each speculation length. The
    estimate lets every task take as many steps as the longest task.
    """
    if problem.tasks > EveryStep.max_size:
        return math.inf
    lengths = 1 if problem.mechanism == "autoregressive" else problem.max_speculation_length or 1
    partitions = 1 if problem.regroup_seconds == 0.0 else 15
    reached = range(_steps(problem))
    return (
        sum(min(1e9, float(math.comb(n + lengths - 1, n)) ** problem.tasks) for n in reached)
        * partitions
    )


def _steps(problem: ContinuousServingProblem) -> int:
    """Return the maximum number of decoding steps over all plans."""
    slowest = problem.tokens_per_step(0 if problem.mechanism == "autoregressive" else 1).min()
    return decoding_steps(int(problem.planned_output_tokens.max()), float(slowest))


def _plan(prepared: Prepared, choices: Iterable[Choice]) -> ContinuousServingPlan:
    """Build a plan from the batches and speculation lengths chosen at each step.

    In every step, finished tasks are appended to the last batch.
    """
    phases: list[Phase] = []
    before: Choice | None = None
    for step, choice in enumerate(choices, start=1):
        if choice == before:
            continue
        before = choice
        batches, lengths = [list(batch) for batch in choice[0]], choice[1]
        batches[-1] += sorted(set(range(prepared.tasks)).difference(*map(set, batches)))
        given = lengths[0] if len(set(lengths)) == 1 else lengths
        phases.append(
            Phase(first_step=step, batches=tuple(map(tuple, batches)), speculation_length=given)
        )
    return prepared.plan(phases, prepared.lengths[0])


@cache
def _partitions(items: tuple[int, ...]) -> tuple[Partition, ...]:
    """Return every ordered partition of the items into nonempty batches."""
    if not items:
        return ((),)
    return tuple(
        (batch, *others)
        for size in range(1, len(items) + 1)
        for batch in itertools.combinations(items, size)
        for others in _partitions(tuple(k for k in items if k not in batch))
    )


class _Search:
    """A dynamic program that finds the minimum latency from every state under one mechanism."""

    def __init__(self, prepared: Prepared, budget: Budget) -> None:
        self.prepared, self.problem, self.budget = prepared, prepared.problem, budget
        self.tokens = np.array(
            [self.problem.tokens_per_step(length) for length in prepared.lengths]
        )
        self.outputs = self.problem.planned_output_tokens.astype(np.float64)
        self.start: Counts = ((0,) * len(prepared.lengths),) * self.problem.tasks
        self.least = cache(self._least)

    def gained(self, counts: Counts) -> tuple[Floats, list[bool]]:
        """Return a tuple (gained, finished): the number of tokens that each task has gained after
        the steps in `counts`, and whether each task has finished.
        """
        found = (np.array(counts).T * self.tokens).sum(axis=0)
        return found, (found >= self.outputs - ROUNDING * self.outputs).tolist()

    def _least(self, counts: Counts, before: Partition | None) -> tuple[float, tuple[Choice, ...]]:
        """Return the minimum latency, in seconds, of the remaining steps from a state, and the
        choices that attain it.
        """
        self.budget.check()
        gained, finished = self.gained(counts)
        active = tuple(k for k, done in enumerate(finished) if not done)
        if not active:
            return 0.0, ()
        best: tuple[float, tuple[Choice, ...]] = (math.inf, ())
        stage = cache(lambda batch, place: self._stages(gained, batch, place, before))
        every = range(len(self.prepared.lengths))
        for partition in _partitions(active):
            for places in itertools.product(every, repeat=len(partition)):
                had = list(map(list, counts))
                for batch, place in zip(partition, places, strict=True):
                    for k in batch:
                        had[k][place] += 1
                state = tuple(map(tuple, had))
                seconds = self._cost(state, partition, list(map(stage, partition, places)))
                if seconds >= best[0]:
                    continue
                later, rest = self.least(state, partition if self.problem.regroup_seconds else None)
                if seconds + later < best[0]:
                    lengths = tuple(self.prepared.lengths[place] for place in places)
                    best = seconds + later, ((partition, lengths), *rest)
        return best

    def _stages(
        self, gained: Floats, batch: tuple[int, ...], place: int, before: Partition | None
    ) -> tuple[float, float]:
        """Return the draft time T^d and the verify time T^v of a batch in one step, in seconds.
        Both are infinite if the batch does not fit in memory.
        """
        problem, length, members = self.problem, self.prepared.lengths[place], list(batch)
        inputs, had, size = problem.input_tokens[members], gained[members], len(batch)
        held = (inputs + np.minimum(self.outputs[members], had + self.tokens[place, members])).max()
        if not self.prepared.fits(size, float(held), 0.0):
            return math.inf, math.inf
        times = problem.stage_seconds(size, (inputs + had).max(keepdims=True), length, not had[0])
        moved = 0.0
        if before is not None:
            stay = max(len(set(batch) & set(other)) for other in before)
            moved = (size - stay) * problem.regroup_seconds
        return float(times[0][0]) + (moved if length else 0.0), float(times[1][0]) + moved

    def _cost(self, state: Counts, partition: Partition, times: list[tuple[float, float]]) -> float:
        """Return the latency, in seconds, that one step adds to the objective."""
        *ends, last = self.prepared.completed(times)
        if self.problem.objective != "mean_latency":
            return float(last)
        finished = self.gained(state)[1]
        ends = [
            end if finished[k] else last
            for batch, end in zip(partition, (*ends, last), strict=True)
            for k in batch
        ]
        return float(sum(ends) / self.problem.tasks)
