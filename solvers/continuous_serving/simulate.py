"""What a plan takes when acceptances are random, or what a policy makes of the tasks; see `replay`
and `policies`.
"""

from __future__ import annotations

from specopt.models.arguments import integer
from specopt.models.continuous_serving.problem import (
    ContinuousServingPlan,
    ContinuousServingProblem,
)
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.solvers.continuous_serving.policies import POLICIES, play
from specopt.solvers.continuous_serving.replay import replay
from specopt.solvers.policy import Policy
from specopt.solvers.simulation import MAX_REPLICATIONS, Simulation, Tell


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
                f"replications: expected none (a policy is played once), got {replications}"
            )
        return play(problem, plan, speculation_length, integer("seed", seed, 0))
    if not isinstance(plan, ContinuousServingPlan):
        raise InvalidInput(
            f"policy: expected one of {', '.join(POLICIES)}, a policy or a plan, got"
            f" {describe(plan)}"
        )
    replications = integer(
        "replications", 200 if replications is None else replications, 2, MAX_REPLICATIONS
    )
    seed = integer("seed", seed, 0)
    violations = problem.violations(plan)
    if violations:
        raise InvalidInput(f"plan: expected a feasible plan, but {violations[0]}")
    return replay(problem, plan, replications, seed, callback or (lambda done, mean: None))
