"""Any policy of draft control, token by token over the Markov channel: the rate and how sure it is.

Every draft is accepted with the state's probability at the policy's resolution, independently, up to the first
rejection; the server adds a token of its own. Replications are independent and start in the chain's stationary
distribution, so that tokens and seconds of a replication are in the ratio of the long run on average, however slowly
the chain mixes. The rate is their ratio of sums; its standard error is that of tokens - rate x seconds over the
replications (delta method). The adaptive heuristic carries its length along, which takes a while to forget its start:
`warm_up` iterations of every replication do not count.

With responses, the simulation also plays every replication until it has N_max tokens and reports the mean of
tokens / seconds: E[ratio], the objective of Eq. 12 as it is printed. It is not the long-run rate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specopt.models.arguments import integer
from specopt.models.draft_control import DraftControlPlan, DraftControlProblem
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.policies import AdaptiveHeuristic, Policy, as_policy
from specopt.solvers.draft_control.prepare import prepare
from specopt.solvers.simulation import MAX_REPLICATIONS, Estimate, Simulation, Tell, random_key

MAX_ITERATIONS = 1_000_000_000
_DRAWS_PER_CALL = 20_000_000  # about a tenth of a second


@dataclass(frozen=True, kw_only=True, eq=False)
class RateSimulation(Simulation):
    """What a policy yields, beside the judge's number.

    `estimates` are "tokens_per_second", the long-run rate: sum of tokens over sum of seconds; the drafts and accepted
    drafts of an iteration; and, if asked for, the rate of single responses (Eq. 12).

    Parameters
    ----------
    problem_sha256
        The problem.
    iterations, warm_up
        How long each replication is, after how many iterations that do not count.
    tokens, drafted_tokens, simulated_seconds
        Sums over all counted iterations.
    state_shares
        Share of iterations in every state, shape (S,).
    response_tokens, mean_response_tokens, mean_response_seconds
        A response ends with the iteration that brings it to N_max tokens, and may overshoot; None if not requested.
    samples_tokens, samples_seconds
        Every replication, in order.
    """

    kind = DraftControlProblem.kind
    problem_sha256: str
    iterations: int
    warm_up: int
    tokens: int
    drafted_tokens: int
    simulated_seconds: float
    state_shares: Floats
    response_tokens: int | None
    mean_response_tokens: float | None
    mean_response_seconds: float | None
    samples_tokens: Ints = field(repr=False)
    samples_seconds: Floats = field(repr=False)

    @property
    def responses(self) -> Estimate | None:
        """Tokens / seconds of single responses (Eq. 11-12), if asked for."""
        return self.estimates.get("response_tokens_per_second")

    @property
    def mean_draft_tokens(self) -> float:
        """Drafts per iteration."""
        return self.estimates["draft_tokens"].mean

    @property
    def facts(self) -> dict[str, str]:
        """How long replications and responses are."""
        facts = {"replications": f"{self.iterations} iterations each, after {self.warm_up} that do not count"}
        if self.response_tokens is not None:
            facts["responses"] = f"responses of {self.response_tokens} tokens, one per replication (Eq. 12)"
        return facts


def simulate(
    problem: DraftControlProblem,
    policy: Policy | str,
    *,
    seed: int = 0,
    replications: int = 1000,
    callback: Tell | None = None,
    iterations: int = 1000,
    warm_up: int = 100,
    response_tokens: int | None = None,
) -> RateSimulation:
    """Play a policy.

    Parameters
    ----------
    problem
        Channel, timings and acceptance rates.
    policy
        A feasible plan, "adaptive-heuristic", "llm-alone", or one of them with options.
    seed
        The same seed gives the same channel and the same luck to every policy: differences are paired.
    replications
        How often, at least twice.
    callback
        Called now and then with the replications done and the rate so far.
    iterations, warm_up
        Iterations of a replication that count, and those before them.
    response_tokens
        N_max of Eq. 11: also play every replication as one response of at least this many tokens.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or a plan violates the problem.
    """
    started = time.perf_counter()
    replications = integer("replications", replications, 2, MAX_REPLICATIONS)
    iterations = integer("iterations", iterations, 1, MAX_ITERATIONS)
    warm_up = integer("warm_up", warm_up, 0, MAX_ITERATIONS)
    seed = integer("seed", seed, 0)
    if response_tokens is not None:
        response_tokens = integer("response_tokens", response_tokens, 1, MAX_ITERATIONS)
    chosen = as_policy(problem, policy)
    kernels = Budget(problem).load("draft_control_simulation")
    world = (*_world(problem), kernels.Policy(**_steering(problem, chosen)), random_key(seed))
    draws = (iterations + warm_up) * (1 + _longest(problem, chosen))
    counts, seconds, visits = _play(kernels, world, replications, draws, (warm_up, iterations, 0), callback)
    tokens = counts[:, 0].copy()
    estimates = {
        "tokens_per_second": Estimate.ratio(tokens, seconds),
        "draft_tokens": Estimate.of(counts[:, 1] / iterations),
        "accepted_tokens": Estimate.of(tokens / iterations - 1.0),
    }
    mean_tokens = mean_seconds = None
    if response_tokens is not None:
        made, spent, _ = _play(kernels, world, replications, 10 * response_tokens, (0, 0, response_tokens))
        made = made[:, 0]
        estimates["response_tokens_per_second"] = Estimate.of(made / spent)
        mean_tokens, mean_seconds = float(made.mean()), float(spent.mean())
    return RateSimulation(
        policy="plan" if isinstance(chosen, DraftControlPlan) else chosen.name,
        replications=replications,
        seed=seed,
        estimates=estimates,
        model=problem.evaluate(chosen).objective if isinstance(chosen, DraftControlPlan) else None,
        seconds=time.perf_counter() - started,
        problem_sha256=problem.sha256,
        iterations=iterations,
        warm_up=warm_up,
        tokens=int(tokens.sum()),
        drafted_tokens=int(counts[:, 1].sum()),
        simulated_seconds=float(seconds.sum()),
        state_shares=visits.sum(axis=0) / (replications * iterations),
        response_tokens=response_tokens,
        mean_response_tokens=mean_tokens,
        mean_response_seconds=mean_seconds,
        samples_tokens=tokens,
        samples_seconds=seconds,
    )


def _world(problem: DraftControlProblem) -> tuple[Any, ...]:
    """Return what an iteration takes and yields, the summed rows of the chain and of its stationary distribution."""
    prepared, shares = prepare(problem), np.cumsum(problem.stationary_distribution)
    return prepared.for_kernels, np.cumsum(prepared.transition, axis=1), shares


def _play(
    kernels: Any,
    world: tuple[Any, ...],
    replications: int,
    draws: int,
    lengths: tuple[int, int, int],
    callback: Tell | None = None,
) -> tuple[Ints, Floats, Ints]:
    """Return tokens and drafts, seconds, and visits of all replications; `draws` are those of one."""
    counts = np.empty((replications, 2), np.int64)
    visits, seconds = np.empty((replications, len(world[1])), np.int64), np.empty(replications)
    at_once = max(1, _DRAWS_PER_CALL // draws)
    for first in range(0, replications, at_once):
        end = min(first + at_once, replications)
        part = slice(first, end)
        kernels.play(*world, first, *lengths, counts[part], seconds[part], visits[part])
        if callback is not None:
            callback(end, float(counts[:end, 0].sum() / seconds[:end].sum()))
    return counts, seconds, visits


def _steering(problem: DraftControlProblem, policy: Policy) -> dict[str, Any]:
    """Return lengths and resolution indices per state, whether the length adapts, and its start."""
    states = len(problem.states)
    values = problem.resolutions.tolist()
    lengths, indices = np.zeros(states, np.int64), np.zeros(states, np.int64)
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
