"""Shared parts of the simulators of both serving kinds, which replay plans with random acceptances.

Each draft token is accepted with its task's probability alpha, independently, up to the first
rejection, and the server adds a token of its own. A task needs its own output length O_k, also
where the problem counts conservatively; further tokens are cut off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.problem import Evaluation
from specopt.models.serving_data import Mechanism, ServingData, ServingPlan
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


def replay(
    runs: Replications, play: Callable[..., object], communication_seconds: float, at_once: int
) -> dict[str, Estimate]:
    """Replay a plan, and return the estimates of its latency and its decoding steps.

    Parameters
    ----------
    runs
        The replications.
    play
        Plays a number of replications from a first one on, and fills their seconds without
        communication and their steps.
    communication_seconds
        Additional seconds of every replication.
    at_once
        Number of replications that are played together.
    """
    seconds, steps = np.empty(runs.count), np.empty(runs.count, np.int64)
    return runs.play(
        lambda part: play(part.start, seconds[part], steps[part]),
        lambda done: {
            "latency_seconds": seconds[:done] + communication_seconds,
            "decoding_steps": steps[:done],
        },
        at_once=at_once,
    )
