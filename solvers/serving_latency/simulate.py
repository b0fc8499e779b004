"""What a plan takes when acceptances are random: the pipeline replayed token by token, many times.

The model behind the objective is a mean field: every task of a batch gains L tokens per step (Eq. 7) and needs
ceil(O / L) steps (Eq. 8). Here each draft token is accepted with probability alpha, independently, up to the first
rejection, and the server adds a token of its own. What the replay assumes:

* A task needs its own output length O_k, also where the problem counts conservatively; what it gains beyond is cut off.
* A batch leaves the pipeline when all of its tasks have finished (Eq. 21 with the real steps). Until then it counts
  with all of its tasks, as in the model, or, with `drop_finished`, with those that still work.
* Eq. 13-14 take the longest output that a task of the batch has reached (one that counts) in place of (n - 1) L;
  prompts stay padded to the longest of the batch.
* Everything else is the model: padding, stage times, the recursion of Eq. 20, communication as planned.

A batch ends with its slowest task, and the mean of a maximum is above the maximum of means: the model is close where
output lengths within a batch differ (in the setting of paper 1 within 0.5 %), and 1-3 % low where all are equal.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specopt.models.acceptance import decoding_steps
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints, describe
from specopt.models.serving_latency import Mechanism, ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.samples import check_integer, quantiles, t_quantile
from specopt.solvers.serving_latency.prepare import prepare

MOST_REPLICATIONS = 10_000_000
_DRAWS_PER_CALL = 20_000_000  # about a tenth of a second


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation:
    """The distribution of the real serving latency of a plan, beside the model's number.

    Parameters
    ----------
    problem_sha256
        The problem whose plan was replayed.
    mechanism, replications, seed, drop_finished
        What was replayed and how.
    mean_seconds, standard_error_seconds, confidence_interval_seconds
        Mean total serving latency, its standard error, and its 95 % confidence interval (Student's t).
    quantiles_seconds
        By level, from 0.05 to 0.95.
    communication_seconds
        The part T_com of every replication; it is not random.
    model_seconds, ratio
        The judge's objective of the plan, and mean / model.
    known_model_seconds, known_ratio
        The same with every task's own output length in Eq. 8: what is left is the mean field alone.
    mean_steps, quantiles_steps, model_steps, known_model_steps
        Decoding steps until the last batch has left; random, by the model, by the model with own lengths.
    batch_mean_steps, batch_known_model_steps
        The same for each batch of the plan.
    seconds
        Computing time, compilation included.
    samples_seconds, samples_steps
        Every replication, in order; not part of `to_dict`.
    """

    problem_sha256: str
    mechanism: Mechanism
    replications: int
    seed: int
    drop_finished: bool
    mean_seconds: float
    standard_error_seconds: float
    confidence_interval_seconds: tuple[float, float]
    quantiles_seconds: dict[float, float]
    communication_seconds: float
    model_seconds: float
    ratio: float
    known_model_seconds: float
    known_ratio: float
    mean_steps: float
    quantiles_steps: dict[float, float]
    model_steps: int
    known_model_steps: int
    batch_mean_steps: tuple[float, ...]
    batch_known_model_steps: tuple[int, ...]
    seconds: float
    samples_seconds: Floats = field(repr=False)
    samples_steps: Ints = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the samples as JSON-like data."""
        out: dict[str, Any] = {"kind": ServingLatencyProblem.kind}
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, np.ndarray):
                continue
            if isinstance(value, dict):
                value = {f"{level:g}": one for level, one in value.items()}
            out[entry.name] = list(value) if isinstance(value, tuple) else value
        return out


def simulate(
    problem: ServingLatencyProblem,
    plan: ServingLatencyPlan,
    *,
    replications: int = 1000,
    seed: int = 0,
    drop_finished: bool = False,
    callback: Callable[[int, float], object] | None = None,
) -> Simulation:
    """Replay a plan with random acceptances.

    Parameters
    ----------
    problem, plan
        The plan must be feasible for the problem.
    replications
        How often, at least twice.
    seed
        The same seed gives the same luck to every task, whatever the plan: differences between plans are paired.
    drop_finished
        Whether a task that has finished leaves its batch at once; else the batch stays as large as it was until all
        of its tasks have finished.
    callback
        Called now and then with the replications done and their mean latency in seconds.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or the plan violates the problem.
    """
    started = time.perf_counter()
    check_integer("replications", replications, 2, MOST_REPLICATIONS)
    check_integer("seed", seed, 0, None)
    if not isinstance(drop_finished, bool):
        raise InvalidInput(f"drop_finished: expected true or false, got {describe(drop_finished)}")
    violations = problem.violations(plan)
    if violations:
        raise InvalidInput(f"plan: expected a feasible plan, but {violations[0]}")
    mechanism = problem.mechanism_of(plan)
    model = problem.evaluate(plan)
    communication = model.terms["communication_seconds"]
    known = dataclasses.replace(problem, output_lengths="known").evaluate(plan)

    inference, steps, batch_steps = _replay(
        problem, plan, replications, seed, drop_finished, lambda done, mean: _tell(callback, done, mean + communication)
    )
    total = inference + communication
    mean = float(total.mean())
    error = float(total.std(ddof=1)) / math.sqrt(replications)
    half = t_quantile(replications - 1) * error
    planned = [int(problem.planned_output_tokens[list(batch)].max()) for batch in plan.batches]
    own = [int(problem.output_tokens[list(batch)].max()) for batch in plan.batches]
    prepared = prepare(problem, mechanism)
    tokens = prepared.tokens_per_step(plan.speculation_length)
    known_steps = tuple(decoding_steps(one, tokens) for one in own)
    return Simulation(
        problem_sha256=problem.sha256,
        mechanism=mechanism,
        replications=replications,
        seed=seed,
        drop_finished=drop_finished,
        mean_seconds=mean,
        standard_error_seconds=error,
        confidence_interval_seconds=(mean - half, mean + half),
        quantiles_seconds=quantiles(total),
        communication_seconds=communication,
        model_seconds=model.objective,
        ratio=mean / model.objective,
        known_model_seconds=known.objective,
        known_ratio=mean / known.objective,
        mean_steps=float(steps.mean()),
        quantiles_steps=quantiles(steps),
        model_steps=max(decoding_steps(one, tokens) for one in planned),
        known_model_steps=max(known_steps),
        batch_mean_steps=tuple(float(one) for one in batch_steps / replications),
        batch_known_model_steps=known_steps,
        seconds=time.perf_counter() - started,
        samples_seconds=total,
        samples_steps=steps,
    )


def _replay(
    problem: ServingLatencyProblem,
    plan: ServingLatencyPlan,
    replications: int,
    seed: int,
    drop_finished: bool,
    tell: Callable[[int, float], object],
) -> tuple[Floats, Ints, Ints]:
    """Return the inference latency and the steps of every replication, and the summed steps of every batch."""
    kernels = Budget(problem).load("serving_latency_simulation")
    prepared = prepare(problem, problem.mechanism_of(plan))
    tasks = np.array([task for batch in plan.batches for task in batch], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum([len(batch) for batch in plan.batches])]).astype(np.int64)
    outputs = problem.output_tokens[tasks].astype(np.int64)
    key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    inference = np.empty(replications)
    steps = np.empty(replications, dtype=np.int64)
    batch_steps = np.zeros(len(plan.batches), dtype=np.int64)
    chunk = max(1, int(_DRAWS_PER_CALL // (outputs.sum() + 1)))
    for first in range(0, replications, chunk):
        part = slice(first, first + chunk)
        kernels.replay(
            prepared.code, plan.speculation_length, float(problem.acceptance_rate or 0.0),
            problem.input_tokens[tasks].astype(np.float64), outputs, tasks, starts, *prepared.models,
            drop_finished, key, first, inference[part], steps[part], batch_steps,
        )  # fmt: skip
        done = min(first + chunk, replications)
        tell(done, float(inference[:done].mean()))
    return inference, steps, batch_steps


def _tell(callback: Callable[[int, float], object] | None, done: int, mean: float) -> None:
    if callback is not None:
        callback(done, mean)
