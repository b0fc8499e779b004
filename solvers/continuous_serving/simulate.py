"""Latency of a plan when acceptances are random, or of the steps of a policy.

Policies are in `policies`. In the replay of a plan a task leaves when it has its own output length
O_k. Batches, their order and their speculation lengths are those of the plan's phase, and the last
phase continues. Everything else is as in the judge.
"""

from __future__ import annotations

import bisect

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
from specopt.solvers.serving_replay import (
    ReplaySimulation,
    Runs,
    judged_feasible,
    played,
    replay,
)
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
    prepared = prepare(problem, problem.mechanism_of(plan))
    firsts = [phase.first_step for phase in plan.phases]

    def runs_of(step: int) -> Runs:
        phase = plan.phases[bisect.bisect_right(firsts, step) - 1]
        return [*zip(phase.batches, phase.lengths(plan.speculation_length), strict=True)]

    def play_some(part: slice) -> tuple[Floats, Floats]:
        random, count = np.random.default_rng([runs.seed, part.start]), part.stop - part.start

        def draw(step: int) -> Floats:
            # the same numbers for a step and a task, however many replications are played
            return random.random((AT_ONCE, problem.tasks))[:count]

        finish, steps = played(prepared, count, runs_of, draw, problem.input_tokens)
        return latency(finish, axis=1), steps.max(axis=1)

    ready = float(problem.readiness(plan)[1].max())
    return runs.result(
        PlanSimulation,
        "plan",
        replay(runs, play_some, ready, at_once=AT_ONCE),
        model=model,
        mechanism=prepared.mechanism,
        communication_seconds=ready,
    )
