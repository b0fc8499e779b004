"""What a rebatched plan takes when acceptances are random: all replications at once, step by step.

Each draft token is accepted with the task's probability alpha, independently, up to the first rejection, and the
server adds a token of its own. A task leaves when it has its own output length O_k; what it gains beyond counts in its
last step alone. Batches, their order and their speculation lengths are those of the plan's phase, the last one for
steps beyond; everything else is as the judge has it: sizes and longest members of those that are served, Eq. 13-22.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from specopt.models.errors import Unsupported
from specopt.models.fields import Floats
from specopt.models.serving_data import Mechanism, ServingLatencyPlan
from specopt.models.serving_latency import ServingLatencyProblem
from specopt.solvers.serving_latency.prepare import prepare
from specopt.solvers.simulation import Estimate, Simulation, Tell

AT_ONCE = 100
"""Replications that are played together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RebatchedSimulation(Simulation):
    """The distribution of the real serving latency of a rebatched plan, beside the judge's number.

    `estimates` are "latency_seconds", the plan's objective, and "decoding_steps" until the last task has finished.

    Parameters
    ----------
    mechanism
        How tasks are served.
    communication_seconds
        The part T_com of every replication; it is not random.
    """

    kind = ServingLatencyProblem.kind
    mechanism: Mechanism
    communication_seconds: float

    @property
    def facts(self) -> dict[str, str]:
        """The mechanism, and what is not random."""
        return {"mechanism": self.mechanism, "communication": f"{self.communication_seconds:.6g} s of it, not random"}


def replay(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, replications: int, seed: int, tell: Tell
) -> RebatchedSimulation:
    """Play a feasible plan many times.

    Raises
    ------
    Unsupported
        If tasks arrive one by one, batches may guess nothing for a while, lengths are predicted, or regrouping costs.
    """
    started = time.perf_counter()
    for clash, words in (
        (problem.arrival_seconds is not None, "arrivals"),
        (problem.output_lengths == "predicted", "predicted output lengths"),
        (problem.regroup_seconds > 0.0, "costs of regrouping"),
        (problem.min_speculation_length == 0, "steps without drafts"),
    ):
        if clash:
            raise Unsupported(f"simulate plays rebatched plans, but not with {words}")
    parts = [
        _Replay(problem, plan, np.random.default_rng([seed, first]), min(AT_ONCE, replications - first))
        for first in range(0, replications, AT_ONCE)
    ]
    latency, steps = np.empty(0), np.empty(0)
    for part in parts:
        part.run()
        finish = part.finish.max(axis=1) if problem.objective == "makespan" else part.finish.mean(axis=1)
        latency, steps = np.append(latency, part.ready + finish), np.append(steps, part.steps)
        tell(len(latency), float(latency.mean()))
    return RebatchedSimulation(
        policy="plan",
        replications=replications,
        seed=seed,
        estimates={"latency_seconds": Estimate.of(latency), "decoding_steps": Estimate.of(steps)},
        model=problem.evaluate(plan).objective,
        seconds=time.perf_counter() - started,
        mechanism=problem.mechanism_of(plan),
        communication_seconds=parts[0].ready,
    )


class _Replay:
    """Several replications: what each task has gained and when it has finished, shape (replications, tasks)."""

    def __init__(
        self, problem: ServingLatencyProblem, plan: ServingLatencyPlan, random: np.random.Generator, count: int
    ) -> None:
        self.problem, self.plan, self.random = problem, plan, random
        self.prepared = prepare(problem, problem.mechanism_of(plan))
        self.ready = float(problem.readiness(plan)[1].max())
        self.logarithms = np.log(problem.rates if plan.speculation_length else np.full(problem.tasks, 0.5))
        self.gained, self.finish = np.zeros((2, count, problem.tasks))
        self.clock, self.steps = np.zeros(count), np.zeros(count)

    def run(self) -> None:
        """Serve steps until every replication has finished."""
        phases, place, step = self.plan.phases, 0, 1
        while (unfinished := self.gained < self.problem.output_tokens).any():
            if place + 1 < len(phases) and phases[place + 1].first_step <= step:
                place += 1
            self._serve(phases[place].batches, phases[place].lengths(self.plan.speculation_length), unfinished, step)
            step += 1

    def _serve(
        self, batches: tuple[tuple[int, ...], ...], lengths: tuple[int, ...], unfinished: np.ndarray, step: int
    ) -> None:
        """Serve one step; luck depends on step and task alone."""
        accepted = np.floor(np.log(self.random.random(self.gained.shape)) / self.logarithms)
        every = [list(batch) for batch in batches]
        times = [self._stage_seconds(*batch, unfinished, step) for batch in zip(every, lengths, strict=True)]
        for members, length, done in zip(every, lengths, self.prepared.completed(times, np.maximum), strict=True):
            served = unfinished[:, members]
            self.gained[:, members] += np.where(served, 1.0 + np.minimum(accepted[:, members], length), 0.0)
            ended = served & (self.gained[:, members] >= self.problem.output_tokens[members])
            self.finish[:, members] = np.where(ended, (self.clock + done)[:, None], self.finish[:, members])
        self.steps += unfinished.any(axis=1)
        self.clock += done

    def _stage_seconds(
        self, members: list[int], length: int, unfinished: np.ndarray, step: int
    ) -> tuple[Floats, Floats]:
        """Return T^d and T^v of a batch's unfinished members; 0 where there are none."""
        served = unfinished[:, members]
        size = served.sum(axis=1)
        reached = np.where(served, self.problem.input_tokens[members] + self.gained[:, members], 1.0).max(axis=1)
        draft, verify = self.problem.stage_seconds(np.maximum(size, 1), reached, length, step == 1)
        return draft * (size > 0), verify * (size > 0)
