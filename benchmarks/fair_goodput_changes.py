"""The online scheduler of fair goodput compared with baselines while clients come, leave, straggle
and change.

Every policy runs with the same seeds, and none was tuned on them. Clients report the number of
accepted drafts before the first rejection. Algorithm 1 receives the outcome of every draft, as it
assumes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from table import Benchmark, Row

import specopt
from specopt.instances.fair_goodput.hard import minimum_rates, per_second
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem
from specopt.online import GoodputScheduler
from specopt.solvers.draft_allocation import fast
from specopt.solvers.fair_goodput.policies import Gradient

FIRST_SEED, SEEDS = 1000, 6
BUDGET = 20
Floats = NDArray[np.float64]
Reports = dict[int, tuple[int, int, float]]
"""By client: drafts accepted before the first rejection, the number of drafts, and the share of all
drafts that was correct.
"""


# ---------------------------------------------------------------------------- rivals


class Rival(ABC):
    """Base of both baselines, with the present clients and Eq. 5 applied to their estimates of
    acceptance rates and goodput.
    """

    def __init__(self, clients: range, budget: int) -> None:
        self.clients: tuple[int, ...] = ()
        self.budget = budget
        self.rounds = 0
        self.known: dict[int, Floats] = {}
        for client in clients:
            self.join(client)

    def join(self, client: int) -> None:
        """Add a client with estimate, goodput, rounds, accepted and tested drafts, and idle
        rounds.
        """
        self.clients += (client,)
        self.known[client] = np.array([0.5, 1.0, 0.0, 0.0, 0.0, 0.0])

    def leave(self, client: int) -> None:
        """Remove a client."""
        self.clients = tuple(key for key in self.clients if key != client)

    def allocate(self) -> Any:
        """Return the number of drafts of each client."""
        self.rounds += 1
        table = np.array([self.known[client] for client in self.clients])
        drafts = np.empty(len(table), dtype=np.int64)
        fast.allocate(
            1.0 / table[:, 1], np.minimum(self.rates(table), 0.999), self.budget, None, drafts
        )
        for i in np.flatnonzero(table[:, 5] >= 50):  # a probe from the client with the most drafts
            if drafts[i] == 0:
                drafts[drafts.argmax()] -= 1
                drafts[i] = 1
        return drafts

    def rates(self, table: Floats) -> Floats:
        """Return the acceptance rates that the policy uses."""
        return table[:, 0]

    def observe(self, number: int, reports: Reports) -> None:
        """Learn from counts up to the first rejection."""
        for client, (accepted, drafts, _) in reports.items():
            tested = min(accepted + 1, drafts)
            self.learn(self.known[client], accepted, tested)
            self.known[client][5] = 0.0 if tested else self.known[client][5] + 1.0

    @abstractmethod
    def learn(self, row: Floats, accepted: int, tested: int) -> None:
        """Update the state of a client."""


class MovingAverages(Rival):
    """Eq. 3 and 4 with small step sizes, and a probe after 50 rounds without drafts."""

    def learn(self, row: Floats, accepted: int, tested: int) -> None:
        """Smooth the evidence with a weight for the number of tested drafts, so that the estimate
        is unbiased.
        """
        row[3] = 0.98 * row[3] + accepted
        row[4] = 0.98 * row[4] + tested
        row[0] = (row[3] + 1.0) / (row[4] + 2.0)
        row[1] += 0.02 * (accepted + 1.0 - row[1])


class UpperConfidence(Rival):
    """Upper confidence bounds (UCB) on acceptance rates, based on their variance. Goodput is
    averaged over all rounds of a client.
    """

    def rates(self, table: Floats) -> Floats:
        """Return the upper ends of the confidence intervals."""
        tested = table[:, 4] + 2.0
        mean = (table[:, 3] + 1.0) / tested
        upper: Floats = mean + np.sqrt(mean * (1.0 - mean) * np.log(self.rounds + 1.0) / tested)
        return upper

    def learn(self, row: Floats, accepted: int, tested: int) -> None:
        """Update the counts."""
        row[2] += 1.0
        row[3] += accepted
        row[4] += tested
        row[1] += (accepted + 1.0 - row[1]) / row[2]


class Ours:
    """Both policies of the package, which receive reports as in a server."""

    def __init__(self, clients: range, budget: int, policy: str | Gradient) -> None:
        self.inner = GoodputScheduler(clients, budget, policy)
        self.every_draft = isinstance(policy, Gradient)
        self.join, self.leave, self.allocate = (
            self.inner.join,
            self.inner.leave,
            self.inner.allocate,
        )

    @property
    def clients(self) -> tuple[Any, ...]:
        """The present clients."""
        return self.inner.clients

    def observe(self, number: int, reports: Reports) -> None:
        """Report with the number of the round."""
        ratios = (
            {client: ratio for client, (_, _, ratio) in reports.items()}
            if self.every_draft
            else None
        )
        accepted = {client: accepted for client, (accepted, _, _) in reports.items()}
        self.inner.observe(accepted, acceptance_ratios=ratios, round=number)


POLICIES: dict[str, Callable[[range, int], Any]] = {
    "robust": lambda clients, budget: Ours(clients, budget, "robust"),
    "Algorithm 1": lambda clients, budget: Ours(clients, budget, Gradient()),
    "moving averages, probes": MovingAverages,
    "UCB": UpperConfidence,
}


# ---------------------------------------------------------------------------- worlds


@dataclass
class World:
    """The clients, with the survival of their drafts and the reliability of their reports.

    Parameters
    ----------
    regimes
        By client, the acceptance probabilities by position for each of two kinds of rounds. Both
        kinds are equally likely.
    late, never
        Probabilities that a report is five rounds late, or missing.
    """

    regimes: dict[int, Floats]
    late: float = 0.0
    never: float = 0.0

    def survival(self, clients: tuple[int, ...]) -> Floats:
        """Return the probability that the first j drafts of each client are accepted."""
        return np.array(
            [np.cumprod(self.regimes[client], axis=1).mean(axis=0) for client in clients]
        )


def steady(rates: Floats) -> dict[int, Floats]:
    """Return clients whose acceptance is constant."""
    return {i: np.full((1, BUDGET), rate) for i, rate in enumerate(rates)}


def by_position(rates: Floats) -> dict[int, Floats]:
    """Return clients whose acceptance decreases, or increases, with every position."""
    drift = np.where(np.arange(len(rates)) % 2, 0.93, 1.03)
    return {
        i: np.minimum(rate * step ** np.arange(BUDGET), 0.99)[None]
        for i, (rate, step) in enumerate(zip(rates, drift, strict=True))
    }


def easy_and_hard(rates: Floats) -> dict[int, Floats]:
    """Return clients for which half of the rounds are easy and half are hard."""
    return {
        i: np.array([np.full(BUDGET, 0.95), np.full(BUDGET, max(0.05, 2 * r - 0.95))])
        for i, r in enumerate(rates)
    }


def optimum(survival: Floats, budget: int) -> float:
    """Return an upper bound on the fair utility, found by Frank-Wolfe over all mixtures of
    allocations, and its duality gap.
    """
    x, bound = np.ones(len(survival)), np.inf
    for step in range(3000):
        worth = survival / x[:, None]
        chosen = np.zeros(survival.size, dtype=np.bool_)
        chosen[np.argsort(-worth, axis=None, kind="stable")[:budget]] = True
        best = 1.0 + (survival * chosen.reshape(survival.shape)).sum(axis=1)
        bound = min(bound, float(np.log(x).sum() + ((best - x) / x).sum()))
        x += (best - x) * (2.0 / (step + 3.0))
    return bound


def play(
    make: Any, world: World, present: int, seed: int, changes: dict[int, Any], spans: Any
) -> list[float]:
    """Simulate rounds. Return the gap to the optimum of the clients that stay, over each span of
    rounds (first, end).

    Parameters
    ----------
    present
        Number of clients at the start.
    changes
        By round, whether each of several clients comes or leaves.
    """
    policy = make(range(present), BUDGET)
    draw = np.random.default_rng(seed)
    due: dict[
        int, dict[int, Reports]
    ] = {}  # by the round of arrival, with the round that they describe
    gains: list[Floats] = []
    for turn in range(spans[-1][1]):
        for comes, client in changes.get(turn, ()):
            (policy.join if comes else policy.leave)(client)
        drafts = policy.allocate().tolist()
        survival = world.survival(policy.clients)
        gains.append(np.array([1.0 + survival[i, :count].sum() for i, count in enumerate(drafts)]))
        for client, count in zip(policy.clients, drafts, strict=True):
            kinds = world.regimes[client]
            right = (draw.random(BUDGET) < kinds[int(draw.integers(len(kinds)))])[:count]
            luck = draw.random()
            if luck >= world.never:
                arrives = turn + 5 * (luck < world.never + world.late)
                report = (
                    count if right.all() else int(right.argmin()),
                    count,
                    float(right.mean()) if count else 0.0,
                )
                due.setdefault(arrives, {}).setdefault(turn, {})[client] = report
        for number, reports in due.pop(turn, {}).items():
            there = {
                client: report for client, report in reports.items() if client in policy.clients
            }
            if there:
                policy.observe(number, there)
    best = optimum(world.survival(policy.clients), BUDGET)
    return [best - float(np.log(np.mean(gains[first:end], axis=0)).sum()) for first, end in spans]


def cases() -> dict[str, tuple[Any, int, dict[int, Any], list[tuple[int, int]]]]:
    """Return the worlds by name: the function from rates to regimes, the clients at the start, the
    changes and the spans of rounds.
    """
    after = [(3000, 3100), (3100, 3200), (3000, 3300)]
    joins = {3000: [(True, 8 + i) for i in range(8)]}
    leaves = {3000: [(False, i) for i in range(8)]}
    long = [(0, 300), (1000, 2000)]
    return {
        "8 join 8 at round 3000": (steady, 8, joins, after),
        "1 joins 8 at round 3000": (steady, 8, {3000: [(True, 8)]}, after),
        "8 of 16 leave at round 3000": (steady, 16, leaves, after),
        "a tenth of the reports late, a tenth never": (steady, 8, {}, long),
        "acceptance by position": (by_position, 8, {}, long),
        "easy and hard rounds": (easy_and_hard, 8, {}, long),
    }


def changes(smoke: bool) -> list[Row]:
    """Measure the gaps of all policies in every world."""
    rows = []
    for name, (regimes, present, events, spans) in cases().items():
        if smoke:
            spans = [(first // 100, max(end // 100, first // 100 + 1)) for first, end in spans]
            events = {turn // 100: event for turn, event in events.items()}
        found: dict[str, Any] = {}
        for label, make in POLICIES.items():
            gaps = []
            for seed in range(FIRST_SEED, FIRST_SEED + (1 if smoke else SEEDS)):
                rates = np.random.default_rng(seed).uniform(0.3, 0.95, 16)
                share = 0.1 if "late" in name else 0.0
                world = World(regimes(rates), late=share, never=share)
                gaps.append(play(make, world, present, seed, events, spans))
            found[label] = np.array(gaps)
        ours = found.pop("robust")
        for place, (first, end) in enumerate(spans):
            rival = min(float(gaps[:, place].mean()) for gaps in found.values())
            rows.append(
                Row(
                    f"{name}: gap over rounds {first}-{end}, mean (worst of {SEEDS} seeds)",
                    f"{ours[:, place].mean():.4f} ({ours[:, place].max():.4f}); "
                    + ", ".join(
                        f"{label} {g[:, place].mean():.3f} ({g[:, place].max():.3f})"
                        for label, g in found.items()
                    ),
                    "below every rival",
                    None if smoke else float(ours[:, place].mean()) < rival,
                )
            )
    return rows


def real_time(smoke: bool) -> list[Row]:
    """Measure tokens per second and guaranteed rates, and their distance from those of a policy
    that knows the clients.
    """
    rows = []
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if smoke else SEEDS))
    rounds = 20 if smoke else 1000
    for rates in ("mild", "wide"):
        gaps: dict[str, list[float]] = {"per second": [], "per round": [], "gradient": []}
        for seed in seeds:
            problem = per_second(rates=rates, seed=seed)
            timing: dict[str, Any] = {
                name: getattr(problem, name)
                for name in (
                    "per",
                    "draft_seconds_per_token",
                    "network_seconds",
                    "verify_overhead_seconds",
                    "verify_seconds_per_token",
                )
            }
            best = _utility(problem)
            for label, scheduler in (
                ("per second", GoodputScheduler(8, BUDGET, **timing)),
                ("per round", GoodputScheduler(8, BUDGET)),
                ("gradient", GoodputScheduler(8, BUDGET, "gradient")),
            ):
                gaps[label].append(best - problem.utility(_rates(problem, scheduler, rounds, seed)))
        means = {label: float(np.mean(found)) for label, found in gaps.items()}
        rows.append(
            Row(
                f"tokens per second, N = 8, C = 20, {rates}: gap over {rounds} rounds, mean"
                " (worst)",
                ", ".join(
                    f"{label} {means[label]:.3f} ({max(found):.3f})"
                    for label, found in gaps.items()
                ),
                "below every rival",
                None if smoke else means["per second"] < min(means["per round"], means["gradient"]),
            )
        )
    for tightness in (0.7, 0.95):
        short, lost = [], []
        for seed in seeds:
            problem = minimum_rates(tightness=tightness, fairness=1.0, seed=seed)
            assert problem.min_goodput is not None
            scheduler = GoodputScheduler(8, BUDGET, min_goodput=problem.min_goodput)
            reached = _rates(problem, scheduler, 3 * rounds, seed)
            short.append(float((1.0 - reached / problem.min_goodput).max()))
            lost.append(_utility(problem) - problem.utility(reached))
        rows.append(
            Row(
                f"promised rates that take {tightness:.0%} of the budget: worst shortfall over"
                f" {3 * rounds} rounds",
                f"mean {max(0.0, np.mean(short)):.1%}, worst {max(short):.1%}; gap mean"
                f" {np.mean(lost):.3f}, worst {max(lost):.3f}",
            )
        )
    return rows


def _utility(problem: FairGoodputProblem) -> float:
    plan = specopt.solve(problem).plan
    assert isinstance(plan, FairGoodputPlan)
    return problem.utility(plan.goodput)


def _rates(
    problem: FairGoodputProblem, scheduler: GoodputScheduler, rounds: int, seed: int
) -> Floats:
    """Return the mean rates over `rounds` rounds, in the unit of the problem."""
    draw = np.random.default_rng(seed)
    alpha, tokens, time = problem.acceptance_rates, np.zeros(problem.clients), 0.0
    for _ in range(rounds):
        drafts = scheduler.allocate()
        scheduler.observe(np.minimum(draw.geometric(1.0 - alpha) - 1, drafts))
        tokens += (1.0 - alpha ** (drafts + 1)) / (1.0 - alpha)
        time += problem.round_seconds(drafts) if problem.per == "second" else 1.0
    rates: Floats = tokens / time
    return rates


BENCHMARKS = (
    Benchmark("fair goodput, changes: gaps beside rivals", changes),
    Benchmark("fair goodput, changes: real time and promises", real_time),
)
