"""Shared parts of the simulators of both serving kinds, which replay plans with random acceptances.

Each draft token is accepted with its task's probability alpha, independently, up to the first
rejection, and the server adds a token of its own. A task needs its own output length O_k, also
where the problem counts conservatively; further tokens are cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints
from specopt.models.problem import Evaluation
from specopt.models.serving_data import Mechanism, ServingData, ServingPlan
from specopt.solvers.serving_method import PreparedServing
from specopt.solvers.simulation import Estimate, Replications, Simulation, judged


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplaySimulation(Simulation):
    """The distribution of the real serving latency of a plan, together with the judged latency.

    `estimates` are "latency_seconds", the plan's objective, and "decoding_steps" until the last
    task has finished.

    Parameters
    ----------
    mechanism
        How tasks are served.
    communication_seconds
        The part T_com of every replication; it is not random.
    """

    mechanism: Mechanism
    communication_seconds: float

    @property
    def steps(self) -> Estimate:
        """Decoding steps until the last batch has left."""
        return self.estimates["decoding_steps"]

    @property
    def facts(self) -> dict[str, str]:
        """The mechanism, and the part that is not random."""
        return {
            "mechanism": self.mechanism,
            "communication": f"{self.communication_seconds:.6g} s of it, not random",
        }


def judged_feasible(problem: ServingData[Any], plan: ServingPlan) -> Evaluation:
    """Return the judge's evaluation of a plan that is to be replayed.

    Raises
    ------
    InvalidInput
        If it is not a plan of the problem's kind, or violates the problem.
    """
    violations = problem.violations(plan) if isinstance(plan, problem.plan_type) else []
    if violations:
        raise InvalidInput(f"plan: the plan is not feasible: {violations[0]}")
    return judged(problem, plan)


Runs = Sequence[tuple[Sequence[int], int]]
"""The batches of a step in order, each with its tasks and its number of draft tokens."""


def played(
    prepared: PreparedServing,
    count: int,
    runs_of: Callable[[int], Runs],
    draw: Callable[[int], Floats],
    inputs: Ints,
    stays: bool = False,
) -> tuple[Floats, Floats]:
    """Return when each task has finished, and in how many steps, by replication and task.

    All replications are played at once, step by step. The stage times of a batch depend on the
    number and the longest of the tasks that it counts (Eq. 13-22).

    Parameters
    ----------
    prepared
        The problem under the plan's mechanism.
    count
        Number of replications.
    runs_of
        Returns the batches of a step, given its number. They contain every task once.
    draw
        Returns the random numbers in [0, 1) of a step, shape (count, K), given its number.
    inputs
        Input length of each task in the batches.
    stays
        Whether a batch counts a task that has finished until all of its tasks have finished.
    """
    problem, outputs = prepared.problem, prepared.problem.output_tokens
    logarithms = np.log(np.maximum(problem.rates, 1e-300))
    gained, finish, taken = np.zeros((3, count, problem.tasks))
    clock, step = np.zeros(count), 0
    while (unfinished := gained < outputs).any():
        step += 1
        batches, lengths = zip(*runs_of(step), strict=True)
        members, sizes = np.concatenate(batches), np.array([*map(len, batches)])
        starts, by_task = np.cumsum(sizes) - sizes, np.argsort(members)
        counted = unfinished[:, members]
        if stays:
            counted = np.repeat(np.logical_or.reduceat(counted, starts, axis=1), sizes, axis=1)
        size = np.add.reduceat(counted * 1.0, starts, axis=1)
        reached = np.where(counted, (inputs + gained)[:, members], 1.0)
        longest = np.maximum.reduceat(reached, starts, axis=1)
        times = np.zeros((2, *size.shape))
        for length in set(lengths):
            some = np.array(lengths) == length
            present = np.maximum(size, 1.0)[:, some]
            times[:, :, some] = problem.stage_seconds(present, longest[:, some], length, step == 1)
        # a batch whose tasks have all finished takes no time
        stages = np.moveaxis(times * (size > 0.0), 2, 0)
        ends = [*prepared.completed(stages, np.maximum)]
        done = np.repeat(np.stack(ends, axis=1), sizes, axis=1)[:, by_task]
        accepted = np.floor(np.log(draw(step)) / logarithms)
        tokens = 1.0 + np.minimum(accepted, np.repeat(lengths, sizes)[by_task])
        gained = np.minimum(gained + tokens, outputs)
        finish = np.where(unfinished & (gained == outputs), clock[:, None] + done, finish)
        taken += unfinished
        clock += ends[-1]
    return finish, taken


def replay(
    runs: Replications,
    play: Callable[[slice], tuple[Floats, Floats]],
    communication_seconds: float,
    at_once: int,
) -> dict[str, Estimate]:
    """Replay a plan, and return the estimates of its latency and its decoding steps.

    Parameters
    ----------
    runs
        The replications.
    play
        Plays a slice of the replications, and returns their seconds without communication and their
        steps.
    communication_seconds
        Additional seconds of every replication.
    at_once
        Number of replications that are played together.
    """
    seconds, steps = np.empty(runs.count), np.empty(runs.count, np.int64)

    def played_part(part: slice) -> None:
        seconds[part], steps[part] = play(part)

    return runs.play(
        played_part,
        lambda done: {
            "latency_seconds": seconds[:done] + communication_seconds,
            "decoding_steps": steps[:done],
        },
        at_once=at_once,
    )
