"""What a plan takes when acceptances are random: all replications at once, step by step.

Each draft token is accepted with the task's probability alpha, independently, up to the first
rejection, and the server adds a token of its own. A task leaves when it has its own output length
O_k; what it gains beyond counts in its last step alone. Batches, their order and their speculation
lengths are those of the plan's phase, the last one for steps beyond. All else is as in the judge:
sizes and longest members of those that are served, Eq. 13-22.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from specopt.models.continuous_serving.problem import (
    ContinuousServingPlan,
    ContinuousServingProblem,
)
from specopt.models.errors import Unsupported
from specopt.models.fields import Floats
from specopt.models.serving_stages import Mechanism
from specopt.solvers.continuous_serving.prepare import prepare
from specopt.solvers.simulation import Estimate, Simulation, Tell

AT_ONCE = 100
"""Replications that are played together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanSimulation(Simulation):
    """The distribution of the real serving latency of a plan, beside the judge's number.

    `estimates` are "latency_seconds", the plan's objective, and "decoding_steps" until the last
    task has finished.

    Parameters
    ----------
    mechanism
        How tasks are served.
    communication_seconds
        The part T_com of every replication; it is not random.
    """

    kind = ContinuousServingProblem.kind
    mechanism: Mechanism
    communication_seconds: float

    @property
    def facts(self) -> dict[str, str]:
        """The mechanism, and what is not random."""
        return {
            "mechanism": self.mechanism,
            "communication": f"{self.communication_seconds:.6g} s of it, not random",
        }


def replay(
    problem: ContinuousServingProblem,
    plan: ContinuousServingPlan,
    replications: int,
    seed: int,
    tell: Tell,
) -> PlanSimulation:
    """Play a feasible plan many times.

    Raises
    ------
    Unsupported
        If tasks arrive one by one, batches may guess nothing for a while, lengths are predicted, or
        regrouping costs.
    """
    started = time.perf_counter()
    for clash, words in (
        (problem.arrival_seconds is not None, "arrivals"),
        (problem.output_lengths == "predicted", "predicted output lengths"),
        (problem.regroup_seconds > 0.0, "costs of regrouping"),
        (problem.min_speculation_length == 0, "steps without drafts"),
    ):
        if clash:
            raise Unsupported(f"simulate plays plans, but not with {words}")
    latency, steps, ready = np.empty(0), np.empty(0), float(problem.readiness(plan)[1].max())
    for first in range(0, replications, AT_ONCE):
        random = np.random.default_rng([seed, first])
        finish, taken = _played(problem, plan, random, min(AT_ONCE, replications - first))
        finish = finish.max(axis=1) if problem.objective == "makespan" else finish.mean(axis=1)
        latency, steps = np.append(latency, ready + finish), np.append(steps, taken)
        tell(len(latency), float(latency.mean()))
    return PlanSimulation(
        policy="plan",
        replications=replications,
        seed=seed,
        estimates={"latency_seconds": Estimate.of(latency), "decoding_steps": Estimate.of(steps)},
        model=problem.evaluate(plan).objective,
        seconds=time.perf_counter() - started,
        mechanism=problem.mechanism_of(plan),
        communication_seconds=ready,
    )


def _played(
    problem: ContinuousServingProblem,
    plan: ContinuousServingPlan,
    random: np.random.Generator,
    count: int,
) -> tuple[Floats, Floats]:
    """Return when each task has finished and how many steps were served, replication by
    replication.
    """
    prepared, outputs = prepare(problem, problem.mechanism_of(plan)), problem.output_tokens
    logarithms = np.log(problem.rates if plan.speculation_length else np.full(problem.tasks, 0.5))
    gained, finish = np.zeros((2, count, problem.tasks))
    clock, steps = np.zeros((2, count))
    place, step = 0, 1
    while (unfinished := gained < outputs).any():
        if place + 1 < len(plan.phases) and plan.phases[place + 1].first_step <= step:
            place += 1
        phase = plan.phases[place]
        runs = list(
            zip(map(list, phase.batches), phase.lengths(plan.speculation_length), strict=True)
        )
        accepted = np.floor(
            np.log(random.random((AT_ONCE, problem.tasks))[:count]) / logarithms
        )  # luck depends on step and task alone
        times = []
        for members, length in runs:
            served = unfinished[:, members]
            size = served.sum(axis=1)
            reached = np.where(served, problem.input_tokens[members] + gained[:, members], 1.0).max(
                axis=1
            )
            stages = problem.stage_seconds(np.maximum(size, 1), reached, length, step == 1)
            times.append(
                (stages[0] * (size > 0), stages[1] * (size > 0))
            )  # 0 where all have finished
        for (members, length), done in zip(
            runs, prepared.completed(times, np.maximum), strict=True
        ):
            served = unfinished[:, members]
            gained[:, members] += np.where(
                served, 1.0 + np.minimum(accepted[:, members], length), 0.0
            )
            ended = served & (gained[:, members] >= outputs[members])
            finish[:, members] = np.where(ended, (clock + done)[:, None], finish[:, members])
        steps += unfinished.any(axis=1)
        clock += done
        step += 1
    return finish, steps
