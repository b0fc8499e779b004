"""Simulation of drafting rounds, used to compare policies with the fair optimum.

Every draft of client i is accepted independently with probability alpha_i, up to the first
rejection, and the server adds its own token. Acceptance rates are fixed, drift, or switch between
regimes (`AcceptanceProcess`). The policy never sees these rates. The policy observes the outcome of
drafts up to the first rejection, as engines report it, or of every draft. Eq. 3 of `gradient`
assumes the latter: the verifier knows p and q at every position.

The gap of a run is U(x*) - U(mean over its rounds of mu(true rates, S(t))). The gap uses expected
rates, so that random acceptances do not hide the quality of the policy's decisions. x* is the
optimum of `fair-goodput` if rates are fixed. Otherwise x* is the optimum of a program over modes.
This program describes a policy that knows every mode and serves all modes with common weights,
where each client's rate is averaged over the modes. A finite run may exceed x* if its share of good
modes is larger.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

import specopt.solvers.fair_goodput.kernels.simulation as kernels
from specopt.models.acceptance import expected_tokens
from specopt.models.arguments import boolean, integer, number, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem
from specopt.models.fair_goodput.workload import GoodputWorkload
from specopt.models.fields import Floats, Ints, describe
from specopt.solvers.budget import Budget
from specopt.solvers.draft_allocation import fast
from specopt.solvers.fair_goodput.dual import Dual
from specopt.solvers.fair_goodput.master import fairest_mixture
from specopt.solvers.fair_goodput.policies import (
    NAMED,
    Gradient,
    Policy,
    discounts_of,
    first_counts,
    first_facts,
    options_of,
)
from specopt.solvers.policy import Policy as OwnPolicy
from specopt.solvers.policy import as_policy, decided, settings_of, twin
from specopt.solvers.simulation import Replications, Simulation, Tell, random_key

MAX_ROUNDS = 10_000_000
_RUNS_PER_CALL = 5
_MODE_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Benchmark:
    """The fair long-run rates that a verifier can reach if it knows all acceptance rates.

    Parameters
    ----------
    goodput
        Goodput x* of each client, in tokens per round.
    utility
        Upper bound on the utility of any policy.
    slack
        Difference between `utility` and the utility of `goodput`.
    """

    goodput: Floats
    utility: float
    slack: float


@dataclass(frozen=True, kw_only=True, eq=False)
class GoodputSimulation(Simulation):
    """The clients' rates at the checkpoints of every replication.

    `estimates` contains the "utility" of the mean expected rates over all rounds, and the
    "gap_to_optimum" of this utility. It also contains the realised tokens per round, as a total
    over all clients ("tokens_per_round") and as a minimum over the clients
    ("least_tokens_per_round").

    Parameters
    ----------
    options
        Options of the policy.
    rounds
        Number of rounds of every replication.
    benchmark
        Optimum with which policies are compared. Its utility is stored as `model`.
    problem
        Problem with the budget, weights, fairness and caps, and with the acceptance rates of the
        first round in the first regime.
    checkpoints
        Numbers of rounds after which cumulative sums are stored, in increasing order.
    expected, realised
        Sums of mu(true rates, S(t)) and sums of tokens up to each checkpoint, both with shape
        (replications, checkpoints, N).
    allocations
        Draft tokens in every round, shape (replications, rounds, N); empty unless recorded.
    """

    kind = FairGoodputProblem.kind
    options: dict[str, Any]
    rounds: int
    benchmark: Benchmark
    problem: FairGoodputProblem = field(repr=False)
    checkpoints: Ints = field(repr=False)
    expected: Floats = field(repr=False)
    realised: Floats = field(repr=False)
    allocations: Ints = field(repr=False)

    @property
    def ratio(self) -> None:
        """Always None, because utilities may be negative. Use `gap` instead."""
        return

    @property
    def facts(self) -> dict[str, str]:
        """Descriptions of the replications, the clients and the model, for reports."""
        return {
            "replications": f"{self.rounds} rounds each",
            "clients": (
                f"{self.problem.clients}, {self.problem.budget_tokens} draft tokens per round"
            ),
            "model": "the fair optimum of whoever knows all acceptance rates",
        }

    def mean_rates(self, start: int = 0, stop: int | None = None) -> Floats:
        """Return the mean rates over rounds start + 1 to stop, with shape (replications, N).

        Each argument must be 0 or a checkpoint.
        """
        stop = int(self.checkpoints[-1]) if stop is None else stop
        first = 0.0 if start == 0 else self.expected[:, self._place(start)]
        rates: Floats = (self.expected[:, self._place(stop)] - first) / (stop - start)
        return rates

    def gap(self, start: int = 0, stop: int | None = None) -> float:
        """Return the utility gap U(x*) - U(mean rates over the rounds), averaged over replications.

        The rounds are start + 1 to stop.
        """
        return float(
            (self.benchmark.utility - _utility(self.problem, self.mean_rates(start, stop))).mean()
        )

    def utility_curve(self) -> Floats:
        """Return the utility of the mean rates up to each checkpoint, as in Figure 4.

        The utility is averaged over replications.
        """
        curve: Floats = _utility(self.problem, self.expected / self.checkpoints[:, None]).mean(
            axis=0
        )
        return curve

    def _place(self, rounds: int) -> int:
        place = int(np.searchsorted(self.checkpoints, rounds))
        if place == len(self.checkpoints) or self.checkpoints[place] != rounds:
            raise InvalidInput(f"rounds: expected one of the checkpoints, got {describe(rounds)}")
        return place


def benchmark(workload: GoodputWorkload) -> Benchmark:
    """Return the fair optimum of a workload, for comparison with the policies."""
    process, problem = workload.moves, workload.problem
    if process.is_fixed:
        outcome = Dual().run(problem, Budget(problem))
        assert isinstance(outcome.plan, FairGoodputPlan) and outcome.bound is not None
        utility = problem.utility(outcome.plan.goodput)
        return Benchmark(
            goodput=outcome.plan.goodput, utility=outcome.bound, slack=outcome.bound - utility
        )
    # All modes share the same weights: the slope of the utility at the mean over modes.
    modes, known = process.modes(), [np.ones(problem.clients)]
    drafts = np.empty(problem.clients, np.int64)
    while True:
        table, free = np.array(known).T, np.zeros((0, len(known)))
        mixed = fairest_mixture(table, problem.weight, problem.fairness, free)
        goodput = table @ mixed.shares
        prices = problem.weight * goodput**-problem.fairness
        best = np.zeros(problem.clients)
        for rates, share in zip(*modes, strict=True):
            fast.allocate(prices, rates, problem.budget_tokens, problem.max_tokens, drafts)
            best += share * expected_tokens(rates, drafts)
        slack = max(0.0, float(prices @ (best - goodput)))
        if slack <= _MODE_TOLERANCE or any((best == one).all() for one in known):
            utility = problem.utility(goodput) + slack
            return Benchmark(goodput=goodput, utility=utility, slack=slack)
        known.append(best)


def simulate(
    workload: GoodputWorkload,
    policy: Policy | OwnPolicy | str = "robust",
    *,
    seed: int = 0,
    replications: int = 100,
    callback: Tell | None = None,
    rounds: int = 600,
    checkpoints: Sequence[int] | Ints | None = None,
    initial_estimates: Sequence[float] | Floats | None = None,
    every_draft: bool | None = None,
    record: bool = False,
    optimum: Benchmark | None = None,
) -> GoodputSimulation:
    """Simulate replications of drafting rounds under a policy.

    Parameters
    ----------
    workload
        Workload that defines the clients, their acceptance process and their shared budget.
    policy
        Policy, as a name ("robust", "gradient", "fixed" or "random") or as an instance with
        options. A user-defined `specopt.Policy` receives a `State`, returns the draft tokens of
        every client, and learns from an `Outcome`.
    seed
        Seed of the random numbers. With the same seed, every draft has the same random outcome
        under any policy, so differences between policies are paired.
    replications
        Number of replications.
    callback
        Function that is called repeatedly with the number of completed replications and their mean
        utility.
    rounds
        Number of rounds of each replication.
    checkpoints
        Numbers of rounds after which cumulative sums are stored, in increasing order. None means
        every round, or about 1000 evenly spaced rounds if there are more.
    initial_estimates
        Initial estimate of each client's acceptance rate; None selects the policy's initial
        estimate.
    every_draft
        Whether the policy observes the outcome of every draft, or only up to the first rejection.
        None means every draft for `gradient`, and up to the first rejection for other policies.
    record
        Whether to store every allocation in the result.
    optimum
        Result of an earlier call of `benchmark`. If None, the benchmark is computed, which takes
        time.

    Raises
    ------
    InvalidInput
        If a value is outside its domain.
    """
    runs = Replications(seed, replications, callback)
    chosen = as_policy(policy, NAMED, *NAMED.values(), OwnPolicy)
    own, problem = isinstance(chosen, OwnPolicy), workload.problem
    last = integer("rounds", rounds, 1, MAX_ROUNDS)
    every_draft = (
        isinstance(chosen, Gradient) if every_draft is None else boolean("every_draft", every_draft)
    )
    record = boolean("record", record)
    points = _checkpoints(checkpoints, last)
    rule: Policy = Gradient() if own else chosen
    estimates = None
    if initial_estimates is not None:
        given = sequence("initial_estimates", initial_estimates, problem.clients)
        estimates = [number(f"initial_estimates[{i}]", one, 0, 1) for i, one in enumerate(given)]
    facts = first_facts(rule, problem.weight, estimates)
    scheduling = kernels.Scheduling(
        policy=rule.code,
        options=options_of(rule, problem.fairness),
        discounts=discounts_of(rule),
        budget=problem.budget_tokens,
    )
    world = kernels.World(
        rates=np.array(workload.moves.rates),
        transition=np.cumsum(workload.moves.transition, axis=1),
        initial=np.cumsum(workload.moves.regime_shares),
        every_draft=every_draft,
    )
    state = scheduling, world, facts, first_counts(problem.max_tokens), random_key(runs.seed)
    expected, realised = (np.empty((runs.count, len(points), problem.clients)) for _ in range(2))
    filled = (
        np.empty((runs.count if record else 0, last, problem.clients), np.int64),
        expected,
        realised,
    )
    best = benchmark(workload) if optimum is None else optimum

    def play(part: slice) -> None:
        loop = _twin(chosen, workload, part.start) if own else kernels.simulate
        loop(*state, part.start, points, *(array[part] for array in filled))

    def figures(done: int) -> dict[str, Floats]:
        utility, tokens = _utility(problem, expected[:done, -1] / last), realised[:done, -1] / last
        return {
            "utility": utility,
            "gap_to_optimum": best.utility - utility,
            "tokens_per_round": tokens.sum(axis=1),
            "least_tokens_per_round": tokens.min(axis=1),
        }

    if own:
        found = runs.play(play, figures)
    else:
        kernels.simulate.prepare()  # once, and not in each of the threads
        found = runs.play(play, figures, at_once=_RUNS_PER_CALL, workers=os.cpu_count() or 1)
    return runs.result(
        GoodputSimulation,
        chosen.name,
        found,
        model=best.utility,
        options=settings_of(chosen),
        rounds=last,
        benchmark=best,
        problem=problem,
        checkpoints=points,
        expected=expected,
        realised=realised,
        allocations=filled[0],
    )


@dataclass(frozen=True)
class State:
    """The information that a policy receives before a round.

    Parameters
    ----------
    round
        Number of the round, counted from 0.
    budget_tokens
        Maximum number of draft tokens in a round.
    caps
        Maximum number of draft tokens of every client.
    weights
        Weight of every client.
    fairness
        Fairness parameter of the utility.
    """

    round: int
    budget_tokens: int
    caps: Ints
    weights: Floats
    fairness: float


@dataclass(frozen=True)
class Outcome:
    """The information that a policy receives after a round.

    Parameters
    ----------
    drafted
        Number of drafted tokens of every client.
    accepted
        Number of drafts of every client that were accepted before the first rejection.
    tested
        Number of drafts of every client whose outcome is known.
    right
        Number of tested drafts of every client that were accepted.
    """

    drafted: Ints
    accepted: Ints
    tested: Floats
    right: Floats


def _twin(policy: OwnPolicy, workload: GoodputWorkload, run: int) -> Any:
    """Return a simulation loop in plain Python that asks a user-defined policy in every round."""
    problem, rounds = workload.problem, count()
    words = (
        f"draft tokens of {problem.clients} clients within their caps, {problem.budget_tokens}"
        " in all"
    )

    def is_allowed(found: Ints) -> bool:
        caps = problem.max_tokens
        within = found.shape == caps.shape and bool(((found >= 0) & (found <= caps)).all())
        return within and int(found.sum()) <= problem.budget_tokens

    def allocate(*arguments: Any) -> None:
        state = State(
            next(rounds),
            problem.budget_tokens,
            problem.max_tokens,
            problem.weight,
            problem.fairness,
        )
        arguments[-1][:] = decided(policy, state, (words, is_allowed))

    def observe(*arguments: Any) -> None:
        drafts, accepted, hits, tested = (array.copy() for array in arguments[-4:])
        policy.learn(Outcome(drafts, accepted, tested, hits))

    return twin(policy, workload, run, kernels.simulate, allocate=allocate, observe=observe)


def _utility(problem: FairGoodputProblem, rates: Floats) -> Floats:
    """Return the utility of rates. The last axis of `rates` runs over the clients."""
    g = problem.fairness
    total: Floats = (
        problem.weight * (np.log(rates) if g == 1.0 else rates ** (1.0 - g) / (1.0 - g))
    ).sum(axis=-1)
    return total


def _checkpoints(given: Sequence[int] | Ints | None, rounds: int) -> Ints:
    if given is None:
        return np.unique(np.linspace(1, rounds, min(rounds, 1000)).astype(np.int64))
    points = np.asarray(given)
    good = points.ndim == 1 and len(points) > 0 and points.dtype.kind in "iu"
    if not good or points[-1] != rounds or (np.diff(points, prepend=0) <= 0).any():
        raise InvalidInput(
            f"checkpoints: expected increasing rounds that end at {rounds}, got {describe(given)}"
        )
    return points.astype(np.int64)
