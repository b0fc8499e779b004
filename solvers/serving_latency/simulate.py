"""What a plan takes when acceptances are random: the pipeline replayed token by token, many times.

The model behind the objective is a mean field: every task of a batch gains L tokens per step (Eq.
7) and needs ceil(O / L) steps (Eq. 8). Here each draft token is accepted with probability alpha,
independently, up to the first rejection, and the server adds a token of its own. What the replay
assumes:

* A task needs its own output length O_k, also where the problem counts conservatively; what it
  gains beyond is cut off.
* A batch leaves the pipeline when all of its tasks have finished (Eq. 21 with the real steps).
  Until then it counts with all of its tasks, as in the model, or, with `drop_finished`, with those
  that still work.
* Eq. 13-14 take the longest output that a task of the batch has reached (one that counts) in place
  of (n - 1) L; prompts stay padded to the longest of the batch.
* Everything else is the model: padding, stage times, the recursion of Eq. 20, communication as
  planned.

A batch ends with its slowest task, and the mean of a maximum is above the maximum of means. The
model is close where output lengths within a batch differ (in the setting of paper 1 within 0.5 %),
and 1-3 % low where all are equal.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.arguments import boolean, integer
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fields import describe
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.models.serving_stages import Mechanism
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.prepare import Prepared, prepare
from specopt.solvers.serving_method import GIVEN, ONE_RATE
from specopt.solvers.simulation import MAX_REPLICATIONS, Estimate, Simulation, Tell, random_key

_DRAWS_PER_CALL = 20_000_000  # about a tenth of a second


@dataclass(frozen=True, kw_only=True, eq=False)
class LatencySimulation(Simulation):
    """The distribution of the real serving latency of a plan, beside the model's number.

    `estimates` are "latency_seconds", and "decoding_steps" until the last batch has left.

    Parameters
    ----------
    problem_sha256
        The problem whose plan was replayed.
    mechanism, drop_finished
        What was replayed and how.
    communication_seconds
        The part T_com of every replication; it is not random.
    known_model, known_ratio
        The model's latency with every task's own output length in Eq. 8, and mean / that: what is
        left is the mean field alone.
    model_steps, known_model_steps
        Decoding steps by the model, and by the model with own lengths.
    batch_mean_steps, batch_known_model_steps
        The same for each batch of the plan, simulated and by the model with own lengths.
    """

    kind = ServingLatencyProblem.kind
    model: float
    problem_sha256: str
    mechanism: Mechanism
    drop_finished: bool
    communication_seconds: float
    known_model: float
    known_ratio: float
    model_steps: int
    known_model_steps: int
    batch_mean_steps: tuple[float, ...]
    batch_known_model_steps: tuple[int, ...]

    @property
    def steps(self) -> Estimate:
        """Decoding steps until the last batch has left."""
        return self.estimates["decoding_steps"]

    @property
    def facts(self) -> dict[str, str]:
        """The mechanism, what is not random, and what the model says of own lengths and steps."""
        facts = {
            "mechanism": self.mechanism,
            "communication": f"{self.communication_seconds:.6g} s of it, not random",
            "model steps": str(self.model_steps),
        }
        if self.known_model != self.model:
            text = (
                f"{self.known_model:.6g}, mean / model {self.known_ratio:.4f}, each task its own"
                " output length"
            )
            facts["known lengths"] = text
        if self.drop_finished:
            facts["batches"] = "finished tasks leave at once; in the model they stay"
        return facts


def simulate(
    problem: ServingLatencyProblem,
    plan: ServingLatencyPlan,
    *,
    seed: int = 0,
    replications: int | None = None,
    callback: Tell | None = None,
    drop_finished: bool = False,
) -> LatencySimulation:
    """Replay a plan with random acceptances.

    Parameters
    ----------
    problem, plan
        The plan must be feasible for the problem.
    seed
        The same seed gives the same luck to every task, whatever the plan: differences between
        plans are paired.
    replications
        How often, at least twice; None: 1000 times.
    callback
        Called now and then with the replications done and their mean latency in seconds.
    drop_finished
        Whether a task that has finished leaves its batch at once; else the batch stays as large as
        it was until all of its tasks have finished.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or the plan violates the problem.
    Unsupported
        If the problem is served in another way.
    """
    started = time.perf_counter()
    if not isinstance(plan, ServingLatencyPlan):
        raise InvalidInput(f"policy: expected a plan, got {describe(plan)}")
    tell = callback or (lambda done, mean: None)
    replications = integer(
        "replications", 1000 if replications is None else replications, 2, MAX_REPLICATIONS
    )
    seed = integer("seed", seed, 0)
    drop_finished = boolean("drop_finished", drop_finished)
    violations = problem.violations(plan)
    if violations:
        raise InvalidInput(f"plan: expected a feasible plan, but {violations[0]}")
    clash = next((words for c in (ONE_RATE, GIVEN) if (words := c.clash(None, problem))), None)
    if clash:
        raise Unsupported(
            f"simulate plays batches of given output lengths at one acceptance rate, not {clash}"
        )
    return dataclasses.replace(
        _simulate(problem, plan, replications, seed, drop_finished, tell),
        seconds=time.perf_counter() - started,
    )


def _simulate(
    problem: ServingLatencyProblem,
    plan: ServingLatencyPlan,
    replications: int,
    seed: int,
    drop: bool,
    tell: Tell,
) -> LatencySimulation:
    """Replay a plan; the seconds are left to the caller."""
    mechanism = problem.mechanism_of(plan)
    model = problem.evaluate(plan)
    known = dataclasses.replace(problem, output_lengths="known").evaluate(plan)
    prepared = prepare(problem, mechanism)
    communication = model.terms["communication_seconds"]
    inference, batch_steps = np.empty(replications), np.zeros(len(plan.batches), np.int64)
    steps = np.empty(replications, np.int64)
    chunk, play_part = _player(prepared, plan, drop, random_key(seed))
    for first in range(0, replications, chunk):
        part = slice(first, first + chunk)
        play_part(first, inference[part], steps[part], batch_steps)
        done = min(first + chunk, replications)
        tell(done, float(inference[:done].mean()) + communication)
    planned, own = (
        tuple(
            prepared.batch_steps(outputs[list(batch)], plan.speculation_length)
            for batch in plan.batches
        )
        for outputs in (problem.planned_output_tokens, problem.output_tokens)
    )
    latency = Estimate.of(inference + communication)
    return LatencySimulation(
        policy="plan",
        replications=replications,
        seed=seed,
        estimates={"latency_seconds": latency, "decoding_steps": Estimate.of(steps)},
        model=model.objective,
        seconds=0.0,
        problem_sha256=problem.sha256,
        mechanism=mechanism,
        drop_finished=drop,
        communication_seconds=communication,
        known_model=known.objective,
        known_ratio=latency.mean / known.objective,
        model_steps=max(planned),
        known_model_steps=max(own),
        batch_mean_steps=tuple((batch_steps / replications).tolist()),
        batch_known_model_steps=own,
    )


def _player(
    prepared: Prepared, plan: ServingLatencyPlan, drop: bool, key: Any
) -> tuple[int, Callable[..., None]]:
    """Return how many replications a call should play, and what plays them."""
    problem = prepared.problem
    kernels = Budget(problem).load("serving_latency.simulation")
    tasks = np.concatenate(plan.batches)
    members = np.array([tasks, problem.input_tokens[tasks], problem.output_tokens[tasks]], np.int64)
    replayed = kernels.Plan(
        overlap=prepared.overlap,
        drop=drop,
        starts=np.cumsum([0, *map(len, plan.batches)]),
        members=members,
        models=prepared.models,
        runtimes=prepared.runtimes.copy(),
        powers=(problem.common_rate if plan.speculation_length else 0.0)
        ** np.arange(1.0, plan.speculation_length + 1),
    )
    longest = int(members[kernels.OUTPUT].max())
    space = np.zeros((2, longest + 2), np.int64), np.zeros((2, longest + 1))
    chunk = max(1, int(_DRAWS_PER_CALL // (members[kernels.OUTPUT].sum() + 1)))
    return chunk, lambda first, *found: kernels.replay(first, key, replayed, *space, *found)
