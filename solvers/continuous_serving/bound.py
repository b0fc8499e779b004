"""Lower bounds on the objective of every plan of continuous serving, from
`specopt.solvers.serving_prices`.

The mean latency of tasks that arrive one by one has a second bound; the larger one counts. A task
has finished no earlier than its prompt is verified and its further steps have been served alone. A
pass over several prompts lasts at least as long as the sum of the seconds that their operations
take. So the verify model is one machine with a job for each prompt, which begins no earlier than
the task is ready. On average its jobs end earliest if it may interrupt them and always serves the
shortest rest.
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
    """Return a lower bound on the objective of every plan under this mechanism."""
    prices = solved_prices(prepared, budget, apart=prepared.problem.arrival_seconds is not None)
    bound = _bound_together if prepared.problem.arrival_seconds is None else _bound_apart
    return float(np.mean([bound(prepared, prices, outputs) for outputs in prices.outputs]))


def _bound_together(prepared: Prepared, prices: Prices, outputs: Floats) -> float:
    """Return the bound for tasks (sorted order) of given output lengths that start together."""
    if prepared.problem.objective == "makespan":
        return prepared.communication_seconds + prices.makespan(outputs)
    work, alone = prices.work(outputs), prices.alone(outputs)
    later = outputs > prices.tokens.max(axis=1)  # not done in the first step
    ends = np.maximum(
        prices.opening() + np.cumsum(np.sort(work[later])), np.sort(alone[later])
    )  # the j-th, at least
    return prepared.communication_seconds + float(np.append(ends, alone[~later]).mean())


def _bound_apart(prepared: Prepared, prices: Prices, outputs: Floats) -> float:
    """Return the bound for tasks (sorted order) of given output lengths that arrive one by one."""
    problem = prepared.problem
    assert problem.arrival_seconds is not None, "tasks arrive"
    work, alone = prices.work(outputs), prices.alone(outputs)
    upload = prepared.upload_seconds[prepared.order]  # over the whole band
    arrival = (problem.arrival_seconds - problem.arrival_seconds.min())[prepared.order]
    ready = (arrival + upload) * (1.0 - SHORT)
    if problem.objective == "makespan":
        return max(float(ready.min() + work.sum()), float((ready + alone).max()))
    ends = np.maximum(preemptive_ends(ready, work), np.sort(ready + alone))
    begun = preemptive_ends(ready, prompt_seconds(prepared))
    found = max(float(ends.mean()), float(begun.mean() + prices.later(outputs).mean()))
    return found - float(arrival.mean())


def prompt_seconds(prepared: Prepared) -> Floats:
    """Return the least seconds of each task's prompt (sorted order) on the verify model, and
    without overlap on both.

    A pass lasts at least as long as the sum over its tasks: overheads and padding only add.
    """
    draft, verify = operations(prepared, prepared.inputs, True)
    slopes = [rows[:, 0].max() for rows in prepared.pieces]
    return np.asarray(slopes[1] * verify[:, 0] + (not prepared.overlap) * slopes[0] * draft[:, 0])


def preemptive_ends(release: Floats, work: Floats) -> Floats:
    """Return when the first, second, ... job ends on one machine that may interrupt any, shortest
    rest first.

    No schedule has ended more of them by any time.
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
