"""Rounds of drafting with random acceptances: what a policy's clients get, beside the fair optimum.

Every draft of client i is accepted with its rate alpha_i, independently, up to the first rejection; the server adds a
token of its own. Rates are fixed, drift, or switch between regimes (`AcceptanceProcess`); the policy never sees them.
It learns the fate of drafts up to the first rejection, which is what engines report, or of every draft, as Eq. 3 of
`gradient` supposes: the verifier knows p and q at every position.

The gap of a run is U(x*) - U(mean over its rounds of mu(true rates, S(t))): expected rates, so that the luck of the
acceptances does not hide what the policy decides. x* is the optimum of `fair-goodput` where rates are fixed. Where they
move, it is the program over modes: the policy that knows every mode and serves all modes with common weights, each
client's rate averaged over the modes. A finite run may do better than x* if its share of good modes is larger.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specopt.models.arguments import boolean, integer, number, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fair_goodput import FairGoodputPlan, FairGoodputProblem
from specopt.models.fields import Floats, Ints, describe
from specopt.models.goodput_workload import GoodputWorkload
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.dual import Dual
from specopt.solvers.fair_goodput.policies import (
    Gradient,
    Policy,
    as_policy,
    discounts_of,
    first_counts,
    first_facts,
    name_of,
    options_of,
)
from specopt.solvers.policy import Policy as OwnPolicy
from specopt.solvers.policy import plain, refused
from specopt.solvers.simulation import Estimate, Simulation, Tell, random_key

MAX_ROUNDS = 10_000_000
_RUNS_PER_CALL = 5
_MODE_ROUNDS = 20_000
_MODE_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Benchmark:
    """The fair long-run rates of whoever knows the clients.

    Parameters
    ----------
    goodput
        x*, tokens per round of each client.
    utility
        An upper bound on the utility of any policy.
    slack
        By how much the utility of `goodput` is below it.
    """

    goodput: Floats
    utility: float
    slack: float


@dataclass(frozen=True, kw_only=True, eq=False)
class GoodputSimulation(Simulation):
    """What the clients got, run by run, at the checkpoints.

    `estimates` are "utility" of the mean expected rates over all rounds, its "gap_to_optimum", and the realised
    tokens per round, "tokens_per_round" of all clients and "least_tokens_per_round" of the one that got the fewest.

    Parameters
    ----------
    options
        Of the policy.
    rounds
        Of every replication.
    benchmark
        The optimum to compare with; `model` is its utility.
    problem
        Budget, weights, fairness and caps; its acceptance rates are those of the first round, first regime.
    checkpoints
        Rounds played, increasing.
    expected, realised
        Shape (replications, checkpoints, N): summed mu(true rates, S(t)), and summed tokens, up to each checkpoint.
    allocations
        Shape (replications, rounds, N), if they were recorded, else empty.
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
        """None: utilities may have any sign; see `gap`."""
        return

    @property
    def facts(self) -> dict[str, str]:
        """How long replications are, and what the model is."""
        return {
            "replications": f"{self.rounds} rounds each",
            "clients": f"{self.problem.clients}, {self.problem.budget_tokens} draft tokens per round",
            "model": "the fair optimum of whoever knows all acceptance rates",
        }

    def mean_rates(self, start: int = 0, stop: int | None = None, *, realised: bool = False) -> Floats:
        """Return the mean rates over rounds start + 1 to stop, shape (replications, N); both 0 or checkpoints."""
        sums = self.realised if realised else self.expected
        stop = int(self.checkpoints[-1]) if stop is None else stop
        first = 0.0 if start == 0 else sums[:, self._place(start)]
        rates: Floats = (sums[:, self._place(stop)] - first) / (stop - start)
        return rates

    def gap(self, start: int = 0, stop: int | None = None) -> float:
        """Return the mean over replications of U(x*) - U(mean rates over the rounds)."""
        return float(self.gaps(start, stop).mean())

    def gaps(self, start: int = 0, stop: int | None = None) -> Floats:
        """Return U(x*) - U(mean rates over the rounds) of every replication."""
        return self.benchmark.utility - self._utility(self.mean_rates(start, stop))

    def utility_curve(self, *, realised: bool = False) -> Floats:
        """Return the utility of the mean rates up to each checkpoint, averaged over replications (Figure 4)."""
        sums = self.realised if realised else self.expected
        curve: Floats = self._utility(sums / self.checkpoints[:, None]).mean(axis=0)
        return curve

    def _utility(self, rates: Floats) -> Floats:
        return _utility(self.problem, rates)

    def _place(self, rounds: int) -> int:
        place = int(np.searchsorted(self.checkpoints, rounds))
        if place == len(self.checkpoints) or self.checkpoints[place] != rounds:
            raise InvalidInput(f"rounds: expected a checkpoint, got {describe(rounds)}")
        return place


def benchmark(workload: GoodputWorkload) -> Benchmark:
    """Return the fair optimum under an acceptance process."""
    process, problem = workload.moves, workload.problem
    if process.is_fixed:
        outcome = Dual().run(problem, Budget(problem))
        assert isinstance(outcome.plan, FairGoodputPlan) and outcome.bound is not None
        utility = problem.utility(outcome.plan.goodput)
        return Benchmark(goodput=outcome.plan.goodput, utility=outcome.bound, slack=outcome.bound - utility)
    kernels = Budget(problem).load("fair_goodput_simulation")
    rates, shares = process.modes()
    goodput = np.empty(problem.clients)
    slack = kernels.fair_rates_over_modes(
        rates, shares, np.array(problem.weight), first_counts(problem.most_tokens), problem.fairness,
        problem.budget_tokens, _MODE_ROUNDS if len(shares) < 50 else _MODE_ROUNDS // 10, _MODE_TOLERANCE, goodput,
    )  # fmt: skip
    return Benchmark(goodput=goodput, utility=problem.utility(goodput) + slack, slack=slack)


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
    """Play rounds under a policy, many times.

    Parameters
    ----------
    workload
        The clients, and what they share.
    policy
        "robust", "gradient", "fixed", "random", or one of them with options; or a `specopt.Policy`: it is given a
        `State`, returns the draft tokens of every client, and learns an `Outcome`.
    seed
        The same seed gives every draft the same luck, whatever the policy: differences between policies are paired.
    replications
        How often.
    callback
        Called now and then with the replications done and their mean utility.
    rounds
        How long.
    checkpoints
        Rounds after which sums are kept, increasing; None: after every round, at most 1000 of them.
    initial_estimates
        As for the scheduler.
    every_draft
        Whether the policy learns the fate of every draft, or up to the first rejection only; None: as it supposes,
        `gradient` of every draft, the others up to the first rejection.
    record
        Whether to keep every allocation.
    optimum
        A benchmark computed before, to save time.

    Raises
    ------
    InvalidInput
        If a value is outside its domain.
    """
    started = time.perf_counter()
    chosen = policy if isinstance(policy, OwnPolicy) else as_policy(policy)
    problem = workload.problem
    last = integer("rounds", rounds, 1, MAX_ROUNDS)
    runs = integer("replications", replications, 1, MAX_ROUNDS)
    key = random_key(integer("seed", seed, 0))
    every_draft = isinstance(chosen, Gradient) if every_draft is None else boolean("every_draft", every_draft)
    record = boolean("record", record)
    points = _checkpoints(checkpoints, last)
    rule = Gradient() if isinstance(chosen, OwnPolicy) else chosen
    facts = first_facts(rule, problem.weight, _first_estimates(initial_estimates, problem.clients))
    kernels = Budget(problem).load("fair_goodput_simulation")
    expected, realised = (np.empty((runs, len(points), problem.clients)) for _ in range(2))
    allocations = np.empty((runs if record else 0, last, problem.clients), np.int64)
    given = *_played(kernels, workload, rule, every_draft), facts, first_counts(problem.most_tokens), key
    filled = allocations, expected, realised
    playing = _play(kernels, given, points, filled)
    if isinstance(chosen, OwnPolicy):
        playing = _play_own(chosen, workload, given, points, filled)
    for done in playing:
        if callback is not None:
            callback(done, float(_utility(problem, expected[:done, -1] / last).mean()))
    best = benchmark(workload) if optimum is None else optimum
    utility, tokens = _utility(problem, expected[:, -1] / last), realised[:, -1] / last
    return GoodputSimulation(
        policy=chosen.name if isinstance(chosen, OwnPolicy) else name_of(chosen),
        replications=runs,
        seed=int(seed),
        estimates={
            "utility": Estimate.of(utility),
            "gap_to_optimum": Estimate.of(best.utility - utility),
            "tokens_per_round": Estimate.of(tokens.sum(axis=1)),
            "least_tokens_per_round": Estimate.of(tokens.min(axis=1)),
        },
        model=best.utility,
        seconds=time.perf_counter() - started,
        options=dataclasses.asdict(chosen) if dataclasses.is_dataclass(chosen) else {},
        rounds=last,
        benchmark=best,
        problem=problem,
        checkpoints=points,
        expected=expected,
        realised=realised,
        allocations=allocations,
    )


def _played(kernels: Any, workload: GoodputWorkload, policy: Policy, every_draft: bool) -> tuple[Any, Any]:
    """Return the kernel's records of the policy and of the world that it meets."""
    moves, problem = workload.moves, workload.problem
    return kernels.Scheduling(
        policy=policy.code,
        options=options_of(policy, problem.fairness),
        discounts=discounts_of(policy),
        budget=problem.budget_tokens,
    ), kernels.World(
        rates=np.array(moves.rates),
        transition=np.cumsum(moves.transition, axis=1),
        initial=np.cumsum(moves.regime_shares),
        every_draft=every_draft,
    )


def _play(kernels: Any, given: tuple[Any, ...], points: Ints, filled: tuple[NDArray[Any], ...]) -> Iterator[int]:
    """Fill the arrays of all runs, on all processors; yield how many runs are done."""
    runs = len(filled[-1])

    def play(first: int) -> int:
        part = slice(first, min(first + _RUNS_PER_CALL, runs))
        kernels.simulate(*given, first, points, *(array[part] for array in filled))
        return part.stop

    kernels.simulate.prepare()  # once, and not in each of the threads
    with ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool:  # the kernel does not hold the interpreter's lock
        yield from pool.map(play, range(0, runs, _RUNS_PER_CALL))


@dataclass(frozen=True)
class State:
    """What a policy sees before a round.

    Parameters
    ----------
    round
        From 0.
    budget_tokens, caps, weights, fairness
        C, the most tokens of every client, and what fairness weighs.
    """

    round: int
    budget_tokens: int
    caps: Ints
    weights: Floats
    fairness: float


@dataclass(frozen=True)
class Outcome:
    """What a policy sees after a round.

    Parameters
    ----------
    drafted, accepted
        Tokens of every client: drafted, and accepted up to the first rejection.
    tested, right
        Drafts whose fate is known, and those of them that were accepted.
    """

    drafted: Ints
    accepted: Ints
    tested: Floats
    right: Floats


def _play_own(
    policy: OwnPolicy, workload: GoodputWorkload, given: tuple[Any, ...], points: Ints, filled: tuple[NDArray[Any], ...]
) -> Iterator[int]:
    """Fill the arrays run by run, as plain Python; yield how many runs are done."""
    problem, rounds = workload.problem, count()

    def allocate(*arguments: Any) -> None:
        state = State(next(rounds), problem.budget_tokens, problem.most_tokens, problem.weight, problem.fairness)
        decision, drafts = policy.decide(state), arguments[-1]
        found = np.asarray(decision)
        good = found.shape == drafts.shape and found.dtype.kind in "iu"
        if not good or (found < 0).any() or (found > state.caps).any() or int(found.sum()) > state.budget_tokens:
            clients = f"draft tokens of {problem.clients} clients within their caps, {state.budget_tokens} in all"
            raise refused(policy, clients, decision)
        drafts[:] = found

    def observe(*arguments: Any) -> None:
        drafts, accepted, hits, tested = (array.copy() for array in arguments[-4:])
        policy.learn(Outcome(drafts, accepted, tested, hits))

    from specopt.solvers._kernels import fair_goodput_simulation

    play = plain(fair_goodput_simulation.simulate, {"allocate": allocate, "observe": observe})
    for run in range(len(filled[-1])):
        policy.start(workload, run)
        rounds = count()
        with np.errstate(over="ignore"):  # of random numbers
            play(*given, run, points, *(array[run : run + 1] for array in filled))
        yield run + 1


def _utility(problem: FairGoodputProblem, rates: Floats) -> Floats:
    """Return the utility of rates of all clients, which are the last axis."""
    g = problem.fairness
    total: Floats = (problem.weight * (np.log(rates) if g == 1.0 else rates ** (1.0 - g) / (1.0 - g))).sum(axis=-1)
    return total


def _first_estimates(given: Sequence[float] | Floats | None, clients: int) -> list[float] | None:
    if given is None:
        return None
    entries = sequence("initial_estimates", given, clients)
    return [number(f"initial_estimates[{i}]", one, 0, 1) for i, one in enumerate(entries)]


def _checkpoints(given: Sequence[int] | Ints | None, rounds: int) -> Ints:
    if given is None:
        return np.unique(np.linspace(1, rounds, min(rounds, 1000)).astype(np.int64))
    points = np.asarray(given)
    good = points.ndim == 1 and len(points) > 0 and points.dtype.kind in "iu"
    if not good or points[0] < 1 or points[-1] != rounds or (np.diff(points) <= 0).any():
        raise InvalidInput(f"checkpoints: expected increasing rounds, the last {rounds}, got {describe(given)}")
    return points.astype(np.int64)
