"""The method `deadline` for `prompt-chunking`.

It finds the largest chunks that meet the earliest deadline, and improves them by local search.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from specopt.models.fields import Ints, PositiveInt
from specopt.models.prompt_chunking.problem import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.method import (
    SearchingMethod,
    call,
    certify,
    places,
    plan_of,
    prepare_and_bound,
)
from specopt.solvers.prompt_chunking.prepare import Prepared, work_space

MAX_GEOMETRIC = 32
"""Maximum number of chunks when geometric chunks are tried."""


def search(prepared: Prepared, effort: int, budget: Budget, close: float = 0.0) -> Ints:
    """Return the chunks of the best plan found in a short search.

    The result is empty if time runs out before a plan is found. `effort` is the maximum number of
    stages to simulate, summed over chunks and plans. The search ends at a starting plan if its
    relative gap is at most `close`.
    """
    assert budget.bound is not None
    most, prompt = min(prepared.most, prepared.cells), prepared.prompt
    families = budget.load("prompt_chunking.families")
    kernels = budget.load("prompt_chunking.search")
    work = work_space(prepared, most)
    out, current = np.empty(prepared.cells + 2, np.int64), work.current
    value, chunks, spent = math.inf, 0, 0
    for start in range(2):
        work.left[0] = effort - spent
        if start == 0:
            few = min(most, MAX_GEOMETRIC)
            count = call(budget, families.best_geometric, few, prompt, work, current, partial=True)
        else:
            arguments = most, prompt, budget.bound, value, 1.0, work, current
            count = call(budget, kernels.earliest_deadline, *arguments, partial=True)
        spent = effort - int(work.left[0])
        if 0 < count <= most:
            work.left[0] = share = effort // 12
            count, found = call(
                budget, kernels.polish, count, most, prompt, False, work, current, partial=True
            )
            spent += max(1, share) - int(work.left[0])
            if found < value:
                value, chunks = found, count
                out[: count + 1] = current[: count + 1]
        if value <= budget.bound * (1.0 + max(kernels.PROVEN, close)):
            return prepared.chunks(out[: chunks + 1])
    if chunks:
        budget.offer(plan_of(prepared.chunks(out[: chunks + 1])))
    rest = chunks, most, effort, spent, value, budget.bound, prompt, work, out
    chunks = call(budget, kernels.search, *rest, partial=True)
    return prepared.chunks(out[: chunks + 1] if chunks else out[:0])


def enumerate_plans(prepared: Prepared, budget: Budget) -> Ints:
    """Return the chunks of the best of all plans, and record its time as the lower bound."""
    families = budget.load("prompt_chunking.families")
    bounds = np.zeros(prepared.cells + 2, np.int64)
    count = call(budget, families.enumerate_plans, prepared.most, prepared.prompt, bounds)
    found = prepared.chunks(bounds[: count + 1])
    budget.improve_bound(budget.offer(plan_of(found)))
    return found


@dataclass(frozen=True)
class Deadline(SearchingMethod):
    """Find the earliest deadline for the first token that a simple rule can meet, and improve the
    chunks by local search.

    The deadline is bisected towards the lower bound. For each deadline, every chunk is the largest
    chunk that still leaves the cloud in time for the downlink. If chunks do not queue in the cloud,
    the result is optimal, as proven by the lower bound, which applies the same rule without queues.
    Queues are simulated exactly. The rule ignores some queueing, for which the local search
    compensates by moving boundaries and by merging and splitting chunks.

    The local search starts from the best geometric chunks, and from chunks that grow at first. It
    continues until neither a merge nor a cut, followed by moves, helps, and ends with a few random
    plans around the best plan. It stops earlier if `effort` is used up. If there are few possible
    chunk ends, all plans are enumerated, so the result is optimal.

    Parameters
    ----------
    effort
        Number of stages that the local search may simulate, in thousands. Each chunk counts as
        eight additional stages.
    enumerate_places
        Maximum number of possible chunk ends for which all plans are tried.
    """

    effort: PositiveInt = 1200
    enumerate_places: Annotated[int, Meta(ge=0, le=20)] = 12

    name = "deadline"
    source = "specopt; paper 4, Sec. 3.3"
    guarantee = "none; a certified gap, mostly below 1 %; optimal if all plans are tried"
    complexity = "O(N + effort)"

    def run(self, problem: PromptChunkingProblem, budget: Budget) -> Outcome:
        """Try all plans if there are few possible chunk ends. Otherwise, search for a plan."""
        prepared = prepare_and_bound(problem, budget)
        if places(problem) <= self.enumerate_places:
            found = enumerate_plans(prepared, budget)
        else:
            found = search(prepared, 1000 * self.effort, budget)
        return certify(found, budget)
