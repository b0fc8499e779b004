"""Lower bounds on the objective of every plan for a `continuous-serving` problem, based on the
prices in `specopt.solvers.serving_prices`.

For the mean latency of tasks that arrive one at a time, a second bound is computed, and the larger
bound is used. A task finishes no earlier than if its prompt is verified first and all of its later
steps are served without other tasks. A pass over several prompts lasts at least the sum of the
durations of their operations. The verify model can therefore be treated as a single machine with
one job per prompt. The job is released when the task is ready. The mean completion time is
minimised if the machine may interrupt jobs and always serves the job with the shortest remaining
time.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush

import numpy as np

from specopt.models.fields import Floats
from specopt.solvers.budget import Budget
from specopt.solvers.continuous_serving.prepare import Prepared
from specopt.solvers.serving_prices import SHORT, Prices, operations, solved_prices


def served_bound(prepared: Prepared, budget: Budget) -> float:
    """Return a lower bound on the objective, in seconds, of every plan under this mechanism."""
    prices = solved_prices(prepared, budget, apart=prepared.problem.arrival_seconds is not None)
    bound = _bound_together if prepared.problem.arrival_seconds is None else _bound_apart
    return float(np.mean([bound(prepared, prices, outputs) for outputs in prices.outputs]))


def _bound_together(prepared: Prepared, prices: Prices, outputs: Floats) -> float:
    """Return a lower bound on the objective, in seconds, for tasks that all start together.

    `outputs` contains the output lengths of the tasks, which are sorted by input length.
    """
    if prepared.problem.objective == "makespan":
        return prepared.communication_seconds + prices.makespan(outputs)
    work, alone = prices.work(outputs), prices.alone(outputs)
    later = outputs > prices.tokens.max(axis=1)  # not finished in the first step
    ends = np.maximum(
        prices.opening() + np.cumsum(np.sort(work[later])), np.sort(alone[later])
    )  # lower bound on the j-th end
    return prepared.communication_seconds + float(np.append(ends, alone[~later]).mean())


def _bound_apart(prepared: Prepared, prices: Prices, outputs: Floats) -> float:
    """Return a lower bound on the objective, in seconds, for tasks that arrive one at a time.

    `outputs` contains the output lengths of the tasks, which are sorted by input length.
    """
    problem = prepared.problem
    assert problem.arrival_seconds is not None, "tasks arrive"
    work, alone = prices.work(outputs), prices.alone(outputs)
    upload = prepared.upload_seconds[prepared.order]  # using the whole band
    arrival = (problem.arrival_seconds - problem.arrival_seconds.min())[prepared.order]
    ready = (arrival + upload) * (1.0 - SHORT)
    if problem.objective == "makespan":
        return max(float(ready.min() + work.sum()), float((ready + alone).max()))
    ends = np.maximum(preemptive_ends(ready, work), np.sort(ready + alone))
    begun = preemptive_ends(ready, prompt_seconds(prepared))
    found = max(float(ends.mean()), float(begun.mean() + prices.later(outputs).mean()))
    return found - float(arrival.mean())


def prompt_seconds(prepared: Prepared) -> Floats:
    """Return the minimum time, in seconds, to process each task's prompt. The tasks are sorted by
    input length.

    The time covers the verify model and, without overlap, also the draft model. A pass over several
    prompts takes at least the sum of their times, because overheads and padding only add time.
    """
    draft, verify = operations(prepared, prepared.inputs, True)
    slopes = [rows[:, 0].max() for rows in prepared.pieces]
    return np.asarray(slopes[1] * verify[:, 0] + (not prepared.overlap) * slopes[0] * draft[:, 0])


def preemptive_ends(release: Floats, work: Floats) -> Floats:
    """Return the completion times, in increasing order, of jobs on one machine, which always serves
    the job with the shortest remaining time.

    `release` and `work` are the release times and the processing times of the jobs. The machine may
    interrupt jobs. No other schedule completes more jobs by any point in time.
    """
    ends: list[float] = []
    left: list[float] = []
    clock = 0.0
    order = np.argsort(release, kind="stable")
    following = [*release[order[1:]].tolist(), math.inf]
    for job, until in zip(order.tolist(), following, strict=True):
        clock = max(clock, float(release[job]))
        heappush(left, float(work[job]))
        while left and clock < until:
            rest = heappop(left)
            done = min(rest, until - clock)
            clock += done
            if done < rest:
                heappush(left, rest - done)
            else:
                ends.append(clock)
    return np.array(ends)
