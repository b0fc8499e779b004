"""Any policy of draft control, token by token over the Markov channel: the rate and how sure it is.

Every draft is accepted with the state's probability at the policy's resolution, independently, up to the first
rejection; the server adds a token of its own. Replications are independent and start in the chain's stationary
distribution, so that tokens and seconds of a replication are in the ratio of the long run on average, however slowly
the chain mixes. The rate is their ratio of sums; its standard error is that of tokens - rate x seconds over the
replications (delta method). The adaptive heuristic carries its length along, which takes a while to forget its start:
`warm_up` iterations of every replication do not count.

Asked for responses, the simulation also plays every replication until it has so many tokens and reports the mean of
tokens / seconds: E[ratio], the objective of Eq. 12 as it is printed. It is not the long-run rate.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specopt.models.draft_control import DraftControlPlan, DraftControlProblem
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.policies import AdaptiveHeuristic, Policy, as_policy
from specopt.solvers.draft_control.tables import Tables
from specopt.solvers.samples import check_integer, quantiles, t_quantile

MOST_REPLICATIONS = 10_000_000
MOST_ITERATIONS = 1_000_000_000
_DRAWS_PER_CALL = 20_000_000  # about a tenth of a second


@dataclass(frozen=True, kw_only=True, eq=False)
class ResponseRate:
    """Tokens per second of single responses (Eq. 11-12).

    Parameters
    ----------
    least_tokens
        A response ends with the iteration that brings it to so many tokens.
    mean_tokens, mean_seconds
        Of a response; the last iteration may overshoot.
    mean_tokens_per_second, confidence_interval_tokens_per_second
        The mean over responses of tokens / seconds, and its 95 % confidence interval (Student's t).
    """

    least_tokens: int
    mean_tokens: float
    mean_seconds: float
    mean_tokens_per_second: float
    confidence_interval_tokens_per_second: tuple[float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class PolicySimulation:
    """What a policy yields, beside the judge's number.

    Parameters
    ----------
    problem_sha256
        The problem.
    policy
        "plan", "adaptive-heuristic" or "llm-alone".
    replications, iterations, warm_up, seed
        How often, how long each, after how many iterations that do not count, with which luck.
    mean_tokens_per_second, standard_error_tokens_per_second, confidence_interval_tokens_per_second
        The long-run rate: sum of tokens over sum of seconds; its standard error and 95 % confidence interval.
    quantiles_tokens_per_second
        Of the rates of single replications, by level from 0.05 to 0.95.
    model_tokens_per_second, ratio
        The judge's objective, and mean / model; None for a policy that is no plan.
    tokens, drafted_tokens, simulated_seconds
        Sums over all counted iterations.
    mean_draft_tokens, mean_accepted_tokens
        Per iteration.
    state_shares
        Share of iterations in every state, shape (S,).
    responses
        The rate of single responses, if asked for.
    seconds
        Computing time, compilation included.
    samples_tokens, samples_seconds
        Every replication, in order; not part of `to_dict`.
    """

    problem_sha256: str
    policy: str
    replications: int
    iterations: int
    warm_up: int
    seed: int
    mean_tokens_per_second: float
    standard_error_tokens_per_second: float
    confidence_interval_tokens_per_second: tuple[float, float]
    quantiles_tokens_per_second: dict[float, float]
    model_tokens_per_second: float | None
    ratio: float | None
    tokens: int
    drafted_tokens: int
    simulated_seconds: float
    mean_draft_tokens: float
    mean_accepted_tokens: float
    state_shares: Floats
    responses: ResponseRate | None
    seconds: float
    samples_tokens: Ints = field(repr=False)
    samples_seconds: Floats = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the samples as JSON-like data."""
        out: dict[str, Any] = {"kind": DraftControlProblem.kind}
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            if entry.name.startswith("samples_"):
                continue
            if isinstance(value, np.ndarray):
                value = value.tolist()
            elif isinstance(value, dict):
                value = {f"{level:g}": one for level, one in value.items()}
            elif isinstance(value, ResponseRate):
                value = dataclasses.asdict(value)
            out[entry.name] = list(value) if isinstance(value, tuple) else value
        return out


def simulate(
    problem: DraftControlProblem,
    policy: Policy | str,
    *,
    replications: int = 1000,
    iterations: int = 1000,
    warm_up: int = 100,
    response_tokens: int | None = None,
    seed: int = 0,
    callback: Callable[[int, float], object] | None = None,
) -> PolicySimulation:
    """Play a policy.

    Parameters
    ----------
    problem
        Channel, timings and acceptance rates.
    policy
        A feasible plan, "adaptive-heuristic", "llm-alone", or one of them with options.
    replications
        How often, at least twice.
    iterations, warm_up
        Iterations of a replication that count, and those before them.
    response_tokens
        N_max of Eq. 11: also play every replication as one response of at least so many tokens.
    seed
        The same seed gives the same channel and the same luck to every policy: differences are paired.
    callback
        Called now and then with the replications done and the rate so far.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or a plan violates the problem.
    """
    started = time.perf_counter()
    check_integer("replications", replications, 2, MOST_REPLICATIONS)
    check_integer("iterations", iterations, 1, MOST_ITERATIONS)
    check_integer("warm_up", warm_up, 0, MOST_ITERATIONS)
    check_integer("seed", seed, 0, None)
    if response_tokens is not None:
        check_integer("response_tokens", response_tokens, 1, MOST_ITERATIONS)
    chosen = as_policy(problem, policy)
    kernels = Budget(problem).load("draft_control_simulation")
    world, steering = _world(problem), kernels.Policy(**_steering(problem, chosen))
    key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    counts: NDArray[np.int64] = np.empty((replications, 2), dtype=np.int64)
    visits: NDArray[np.int64] = np.empty((replications, len(problem.states)), dtype=np.int64)
    seconds = np.empty(replications)
    chunk = max(1, _DRAWS_PER_CALL // ((iterations + warm_up) * (1 + _longest(problem, chosen))))
    for first in range(0, replications, chunk):
        part = slice(first, first + chunk)
        kernels.play(*world, steering, key, first, warm_up, iterations, counts[part], seconds[part], visits[part])
        done = min(first + chunk, replications)
        if callback is not None:
            callback(done, float(counts[:done, 0].sum() / seconds[:done].sum()))
    tokens = counts[:, 0].copy()
    rate = float(tokens.sum() / seconds.sum())
    error = float(np.std(tokens - rate * seconds, ddof=1)) / (math.sqrt(replications) * float(seconds.mean()))
    half = t_quantile(replications - 1) * error
    model = problem.evaluate(chosen).objective if isinstance(chosen, DraftControlPlan) else None
    total = replications * iterations
    return PolicySimulation(
        problem_sha256=problem.sha256,
        policy="plan" if isinstance(chosen, DraftControlPlan) else chosen.name,
        replications=replications,
        iterations=iterations,
        warm_up=warm_up,
        seed=seed,
        mean_tokens_per_second=rate,
        standard_error_tokens_per_second=error,
        confidence_interval_tokens_per_second=(rate - half, rate + half),
        quantiles_tokens_per_second=quantiles(tokens / seconds),
        model_tokens_per_second=model,
        ratio=None if model is None else rate / model,
        tokens=int(tokens.sum()),
        drafted_tokens=int(counts[:, 1].sum()),
        simulated_seconds=float(seconds.sum()),
        mean_draft_tokens=float(counts[:, 1].sum() / total),
        mean_accepted_tokens=float(tokens.sum() / total - 1.0),
        state_shares=visits.sum(axis=0) / total,
        responses=None if response_tokens is None else _responses(
            kernels, world, steering, key, replications, response_tokens
        ),
        seconds=time.perf_counter() - started,
        samples_tokens=tokens,
        samples_seconds=seconds,
    )  # fmt: skip


def _responses(
    kernels: Any, world: tuple[Any, ...], steering: Any, key: np.uint64, replications: int, least: int
) -> ResponseRate:
    tokens, seconds = np.empty(replications, dtype=np.int64), np.empty(replications)
    chunk = max(1, _DRAWS_PER_CALL // (10 * least))
    for first in range(0, replications, chunk):
        part = slice(first, first + chunk)
        kernels.respond(*world, steering, key, first, least, tokens[part], seconds[part])
    rates = tokens / seconds
    mean = float(rates.mean())
    half = t_quantile(replications - 1) * float(rates.std(ddof=1)) / math.sqrt(replications)
    return ResponseRate(
        least_tokens=least,
        mean_tokens=float(tokens.mean()),
        mean_seconds=float(seconds.mean()),
        mean_tokens_per_second=mean,
        confidence_interval_tokens_per_second=(mean - half, mean + half),
    )


def _world(problem: DraftControlProblem) -> tuple[Any, ...]:
    """Return what an iteration takes and yields, the summed rows of the chain and of its stationary distribution."""
    tables = Tables.of(problem)
    shares = np.cumsum(problem.stationary_distribution)
    return tables.for_kernels, np.cumsum(tables.transition, axis=1), shares


def _steering(problem: DraftControlProblem, policy: Policy) -> dict[str, Any]:
    """Return lengths and resolution indices per state, whether the length adapts, and its start."""
    states = len(problem.states)
    values = problem.resolutions.tolist()
    lengths, indices = np.zeros(states, dtype=np.int64), np.zeros(states, dtype=np.int64)
    adaptive, start = isinstance(policy, AdaptiveHeuristic), 0
    if isinstance(policy, AdaptiveHeuristic):
        low, high = problem.draft_lengths
        start = min(max(policy.first_length, low), high)
        if policy.resolution is not None:
            indices[:] = values.index(policy.resolution)
    elif isinstance(policy, DraftControlPlan):
        lengths[:] = [choice.draft_length for choice in policy.policy]
        indices[:] = [values.index(choice.resolution) for choice in policy.policy]
    return {"lengths": lengths, "indices": indices, "adaptive": adaptive, "start": start}


def _longest(problem: DraftControlProblem, policy: Policy) -> int:
    """Return the longest draft that a policy may make."""
    if isinstance(policy, DraftControlPlan):
        return max(choice.draft_length for choice in policy.policy)
    return problem.draft_lengths[1] if isinstance(policy, AdaptiveHeuristic) else 0
