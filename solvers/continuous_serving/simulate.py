"""Simulation of the latency of a plan with random acceptances, or of a scheduling policy.

The policies are in the module `policies`. When a plan is replayed, a task leaves as soon as it
reaches its own output length O_k. The current phase of the plan determines the batches, their order
and their speculation lengths, and the last phase lasts until all tasks have finished. Everything
else is computed as in the evaluation of a plan.
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
"""Number of replications that are simulated together."""


class PlanSimulation(ReplaySimulation):
    """The result of replaying a plan: the distribution of its latency, together with its
    objective.
    """

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
    """Replay a plan with random acceptances, or simulate a policy once with the mean number of
    accepted tokens.

    Parameters
    ----------
    problem, plan
        The problem, and either a feasible plan or a policy. A policy is a name in
        `policies.POLICIES` or a `specopt.Policy` (see `policies`).
    seed
        Random seed. With the same seed, every task uses the same random numbers under every plan,
        which allows paired comparisons of plans.
    replications
        Number of replications of a plan, at least 2. The default is 200. It must be omitted for a
        policy, which is simulated once.
    callback
        Function that is called periodically with the number of completed replications and their
        mean latency in seconds.
    speculation_length
        Speculation length of the policy "continuous".

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or if the plan violates the problem's constraints.
    Unsupported
        If the simulator does not support a feature of the problem.
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
            # the same numbers for a step and a task, regardless of the number of replications
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
