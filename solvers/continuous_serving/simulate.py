"""Latency of a plan when acceptances are random, or of the steps of a policy.

Policies are in `policies`. Of a plan all replications are played at once, step by step. A task
leaves when it has its own output length O_k; tokens beyond it count in its last step alone.
Batches, their order and their speculation lengths are those of the plan's phase, the last one for
steps beyond. All else is as in the judge: sizes and longest members of those that are served, Eq.
13-22.
"""

from __future__ import annotations

import numpy as np

from specopt.models.continuous_serving.problem import (
    ContinuousServingPlan,
    ContinuousServingProblem,
)
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fields import Floats, describe
from specopt.solvers.continuous_serving.policies import POLICIES, play
from specopt.solvers.continuous_serving.prepare import prepare
from specopt.solvers.policy import Policy
from specopt.solvers.serving_replay import ReplaySimulation, judged_feasible, replay
from specopt.solvers.simulation import Replications, Simulation, Tell

AT_ONCE = 100
"""Replications that are played together."""


class PlanSimulation(ReplaySimulation):
    """The distribution of the real serving latency of a plan, together with the judged latency."""

    kind = ContinuousServingProblem.kind


def simulate(
    problem: ContinuousServingProblem,
    plan: ContinuousServingPlan | Policy | str,
    *,
    seed: int = 0,
    replications: int | None = None,
    callback: Tell | None = None,
    speculation_length: int = 3,
) -> Simulation:
    """Replay a plan with random acceptances; or let a policy serve the tasks, once and by the mean.

    Parameters
    ----------
    problem, plan
        The plan must be feasible for the problem. A policy is one of `policies.POLICIES`, or a
        `specopt.Policy`, see there.
    seed
        The same seed gives the same luck to every task, whatever the plan: differences between
        plans are paired.
    replications
        How often, at least twice; None: 200 times. A policy is played once.
    callback
        Called now and then with the replications done and their mean latency in seconds.
    speculation_length
        Of the policy "continuous".

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or the plan violates the problem.
    Unsupported
        If the problem is served in another way.
    """
    if isinstance(plan, str | Policy):
        if replications is not None:
            raise InvalidInput(
                f"replications: omit it with a policy, which is simulated once; got {replications}"
            )
        return play(problem, plan, speculation_length, seed)
    if not isinstance(plan, ContinuousServingPlan):
        raise InvalidInput(
            f"policy: expected one of {', '.join(POLICIES)}, a policy or a plan, got"
            f" {describe(plan)}"
        )
    runs = Replications(seed, 200 if replications is None else replications, callback, minimum=2)
    model = judged_feasible(problem, plan).objective
    for clash, words in (
        (problem.arrival_seconds is not None, "arrivals"),
        (problem.output_lengths == "predicted", "predicted output lengths"),
        (problem.regroup_seconds > 0.0, "regrouping costs"),
        (problem.min_speculation_length == 0, "steps without drafts"),
    ):
        if clash:
            raise Unsupported(f"simulate does not support plans with {words}")
    latency = np.max if problem.objective == "makespan" else np.mean

    def play_some(first: int, seconds: Floats, steps: Floats) -> None:
        random = np.random.default_rng([runs.seed, first])
        finish, steps[:] = _played(problem, plan, random, len(seconds))
        seconds[:] = latency(finish, axis=1)

    ready = float(problem.readiness(plan)[1].max())
    return runs.result(
        PlanSimulation,
        "plan",
        replay(runs, play_some, ready, at_once=AT_ONCE),
        model=model,
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
