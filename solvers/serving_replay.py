"""Code shared by the simulators for `serving-latency` and `continuous-serving` problems, which
replay plans with random acceptances.

Each draft token is accepted independently with probability alpha, its task's acceptance rate, up to
the first rejection. The server then adds one token of its own. Each task is served until it reaches
its own output length O_k, even if the problem uses conservative output lengths. Excess tokens are
discarded.
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
    """The result of replaying a plan: the distribution of its latency, together with its objective.

    The entries of `estimates` are "latency_seconds", which is the simulated value of the objective,
    and "decoding_steps", which is the number of steps until the last task has finished.

    Parameters
    ----------
    mechanism
        Mechanism with which tasks are served.
    communication_seconds
        Communication time T_com, in seconds, which is the same in every replication.
    """

    mechanism: Mechanism
    communication_seconds: float

    @property
    def steps(self) -> Estimate:
        """Estimate of the number of decoding steps until the last batch has finished."""
        return self.estimates["decoding_steps"]

    @property
    def facts(self) -> dict[str, str]:
        """Labelled facts that are displayed with the result: the mechanism, and the communication
        time, which is not random.
        """
        return {
            "mechanism": self.mechanism,
            "communication": f"{self.communication_seconds:.6g} s of it, not random",
        }


def judged_feasible(problem: ServingData[Any], plan: ServingPlan) -> Evaluation:
    """Check that a plan can be replayed, and return its evaluation.

    Raises
    ------
    InvalidInput
        If the plan is for another problem kind, or if it is not feasible.
    """
    violations = problem.violations(plan) if isinstance(plan, problem.plan_type) else []
    if violations:
        raise InvalidInput(f"plan: the plan is not feasible: {violations[0]}")
    return judged(problem, plan)


Runs = Sequence[tuple[Sequence[int], int]]
"""Batches of a step in pipeline order, each as a pair of its tasks and its number of draft tokens.
"""


def played(
    prepared: PreparedServing,
    count: int,
    runs_of: Callable[[int], Runs],
    draw: Callable[[int], Floats],
    inputs: Ints,
    stays: bool = False,
) -> tuple[Floats, Floats]:
    """Simulate several replications together, step by step.

    Return the finish time of each task, in seconds, and its number of steps, both with shape
    (count, K). The stage times of a batch depend on its size and on its longest task (Eq. 13-22).

    Parameters
    ----------
    prepared
        Problem under the plan's mechanism.
    count
        Number of replications.
    runs_of
        Function that returns the batches of the step with a given number. Together, the batches
        contain every task exactly once.
    draw
        Function that returns random numbers in [0, 1), with shape (count, K), for the step with a
        given number.
    inputs
        Input length of each task, including any padding.
    stays
        Whether a finished task remains part of its batch until all tasks of the batch have
        finished.
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
    """Replay a plan, and return estimates of its latency and its number of decoding steps.

    Parameters
    ----------
    runs
        Replications to run.
    play
        Function that simulates a slice of the replications. It returns their latencies in seconds,
        without communication, and their numbers of steps.
    communication_seconds
        Communication time, in seconds, that is added to the latency in every replication.
    at_once
        Number of replications that are simulated together.
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
