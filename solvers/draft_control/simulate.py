"""Token-by-token simulation of draft-control policies over the Markov channel, which estimates the
rate of a policy with a standard error.

Drafts are accepted independently, with the probability of the state at the policy's resolution, up
to the first rejection. The server then adds one token of its own. Replications are independent and
start in the stationary distribution of the chain. The ratio of their expected tokens to their
expected duration is therefore the long-run rate, however slowly the chain mixes.

The rate is estimated as the sum of tokens divided by the sum of seconds. Its standard error follows
from the spread of tokens - rate x seconds over the replications (delta method). The adaptive
heuristic depends on its first length for some iterations, so the first `warm_up` iterations of
every replication are not counted.

If responses are requested, every replication is also played until it has N_max tokens. The mean of
tokens / seconds estimates E[ratio], the objective of Eq. 12 as printed, which is not the long-run
rate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import specopt.solvers.draft_control.kernels.simulation as kernels
from specopt.models.arguments import integer, one_of
from specopt.models.draft_control.problem import DraftControlPlan, DraftControlProblem
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints
from specopt.solvers.draft_control.policies import NAMED, AdaptiveHeuristic, Policy
from specopt.solvers.draft_control.prepare import prepare
from specopt.solvers.policy import as_policy
from specopt.solvers.simulation import Estimate, Replications, Simulation, Tell, random_key

MAX_ITERATIONS = 1_000_000_000
_DRAWS_PER_CALL = 20_000_000  # about a tenth of a second


@dataclass(frozen=True, kw_only=True, eq=False)
class RateSimulation(Simulation):
    """The simulated performance of a policy. If the policy is a plan, its exact rate is included.

    `estimates` contains "tokens_per_second", the long-run rate, which is the sum of tokens divided
    by the sum of seconds. It also contains the mean numbers of drafted and of accepted tokens per
    iteration. If requested, it includes the rate of single responses (Eq. 12).

    Parameters
    ----------
    problem_sha256
        SHA-256 digest of the problem.
    iterations, warm_up
        Number of counted iterations per replication, and number of uncounted iterations before
        them.
    tokens, drafted_tokens, simulated_seconds
        Totals over all counted iterations.
    state_shares
        Fraction of the counted iterations in each state, shape (S,).
    response_tokens, mean_response_tokens, mean_response_seconds
        Minimum length N_max of a response, and the mean tokens and duration of the responses. A
        response ends with the iteration that reaches N_max, so it may be longer. None if responses
        were not requested.
    samples_tokens, samples_seconds
        Number of tokens and duration in seconds of each replication, in the order of simulation.
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
        """Estimated throughput of single responses (Eq. 11-12), in tokens per second.

        The value is None if responses were not requested.
        """
        return self.estimates.get("response_tokens_per_second")

    @property
    def mean_draft_tokens(self) -> float:
        """Mean number of drafted tokens per iteration."""
        return self.estimates["draft_tokens"].mean

    @property
    def facts(self) -> dict[str, str]:
        """Descriptions of the replications and of the responses, for reports."""
        facts = {
            "replications": (
                f"{self.iterations} iterations each, after {self.warm_up} warm-up iterations"
            )
        }
        if self.response_tokens is not None:
            facts["responses"] = (
                f"responses of {self.response_tokens} tokens, one per replication (Eq. 12)"
            )
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
    """Simulate a policy token by token.

    Parameters
    ----------
    problem
        Problem that defines the channel, the timings and the acceptance rates.
    policy
        A feasible plan, the name of a heuristic ("adaptive-heuristic" or "llm-alone"), or an
        instance of a heuristic's class.
    seed
        Seed of the random numbers. Policies that are simulated with the same seed share the channel
        and the random draws, so differences between policies are paired.
    replications
        Number of replications, at least 2.
    callback
        Function that is called repeatedly with the number of replications done and the rate so
        far.
    iterations, warm_up
        Number of counted iterations per replication, and number of uncounted iterations before
        them.
    response_tokens
        Minimum length N_max of a response (Eq. 11). If specified, every replication is also played
        as one response.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or a plan violates the problem.
    """
    runs = Replications(seed, replications, callback, minimum=2)
    iterations = integer("iterations", iterations, 1, MAX_ITERATIONS)
    warm_up = integer("warm_up", warm_up, 0, MAX_ITERATIONS)
    if response_tokens is not None:
        response_tokens = integer("response_tokens", response_tokens, 1, MAX_ITERATIONS)
    chosen = as_policy(policy, NAMED, DraftControlPlan, *NAMED.values())
    is_plan = isinstance(chosen, DraftControlPlan)
    if is_plan and (violations := problem.violations(chosen)):
        raise InvalidInput(f"policy: the plan is not feasible: {violations[0]}")
    steering, indices = _steering(problem, chosen)
    longest = problem.draft_lengths[1] if steering.adaptive else int(steering.lengths.max())
    draws = (iterations + warm_up) * (1 + longest) + 10 * (response_tokens or 0)
    prepared = prepare(problem)
    at = np.arange(prepared.states), indices
    lengths = np.arange(prepared.longest + 1)
    seconds = prepared.seconds(lengths, prepared.per_draft[at][:, None])[:, 0].copy()
    world = (
        kernels.Actions(prepared.rates[at], seconds, prepared.shortest, prepared.longest),
        np.cumsum(prepared.transition, axis=1),
        np.cumsum(problem.stationary_distribution),
        steering,
        random_key(runs.seed),
    )
    played, responses = np.zeros((2, runs.count), kernels.Played)
    visits, unused = np.zeros((2, len(problem.states)), np.int64)

    def play(part: slice) -> None:
        kernels.play(*world, part.start, warm_up, iterations, 0, played[part], visits)
        if response_tokens is not None:
            kernels.play(*world, part.start, 0, 0, response_tokens, responses[part], unused)

    def figures(done: int) -> dict[str, Any]:
        tokens, drafted, seconds = (
            played[name][:done].copy() for name in ("tokens", "drafted", "seconds")
        )
        found = {
            "tokens_per_second": Estimate.ratio(tokens, seconds),
            "draft_tokens": drafted / iterations,
            "accepted_tokens": tokens / iterations - 1.0,
        }
        if response_tokens is not None:
            found["response_tokens_per_second"] = (
                responses["tokens"][:done] / responses["seconds"][:done]
            )
        return found

    found = runs.play(play, figures, at_once=max(1, _DRAWS_PER_CALL // draws))
    is_asked = response_tokens is not None
    return runs.result(
        RateSimulation,
        "plan" if is_plan else chosen.name,
        found,
        model=problem.evaluate(chosen).objective if is_plan else None,
        problem_sha256=problem.sha256,
        iterations=iterations,
        warm_up=warm_up,
        response_tokens=response_tokens,
        mean_response_tokens=float(responses["tokens"].mean()) if is_asked else None,
        mean_response_seconds=float(responses["seconds"].mean()) if is_asked else None,
        tokens=int(played["tokens"].sum()),
        drafted_tokens=int(played["drafted"].sum()),
        simulated_seconds=float(played["seconds"].sum()),
        state_shares=visits / visits.sum(),
        samples_tokens=played["tokens"].copy(),
        samples_seconds=played["seconds"].copy(),
    )


def _steering(problem: DraftControlProblem, policy: Policy) -> tuple[Any, Ints]:
    """Return the kernel record of a policy, and the resolution index that it uses in each state."""
    values = problem.resolutions.tolist()
    lengths, indices = np.zeros((2, len(problem.states)), np.int64)
    start = 0
    if isinstance(policy, DraftControlPlan):
        lengths[:] = [choice.draft_length for choice in policy.policy]
        indices[:] = [values.index(choice.resolution) for choice in policy.policy]
    elif isinstance(policy, AdaptiveHeuristic):
        start = int(np.clip(policy.first_length, *problem.draft_lengths))
        if policy.resolution is not None:
            indices[:] = values.index(one_of("policy.resolution", policy.resolution, values))
    return kernels.Policy(lengths, isinstance(policy, AdaptiveHeuristic), start), indices
