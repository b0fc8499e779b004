"""The online policies of fair goodput once more, slowly, from their description; imports nothing of
ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from oracles.splitmix import GOLDEN, mixed, uniform


def fate(key: int, run: int, place: int, draft: int, alpha: float) -> bool:
    """Whether a draft (from 1) is accepted; its place is round x N + client."""
    stream = mixed(mixed(key + (run + 1) * GOLDEN) + (place + 1) * GOLDEN)
    return uniform(stream + draft * GOLDEN) < alpha


def goodput(alpha: float, drafts: int) -> float:
    """Expected tokens of a round."""
    return math.fsum(alpha**j for j in range(drafts + 1))


def survival(rates: list[float], drafts: int) -> float:
    """The chance that all `drafts` drafts are accepted: each place has its rate, later ones the
    last rate.
    """
    return math.prod(rates[min(j, len(rates) - 1)] for j in range(drafts))


def greedy(
    weights: list[float],
    rates: list[list[float]],
    firsts: list[float],
    drafts: list[int],
    left: int,
) -> None:
    """Give out drafts one by one, each where it is worth most."""
    for _ in range(left):
        worth = [
            w * (first if s == 0 else survival(one, s + 1))
            for w, one, first, s in zip(weights, rates, firsts, drafts, strict=True)
        ]
        drafts[worth.index(max(worth))] += 1


@dataclass
class GradientClient:
    """What Algorithm 1 knows of a client."""

    every_draft: ClassVar[bool] = True

    estimate: float = 0.5
    goodput: float = 1.0
    idle: int = 0

    @property
    def rates(self) -> list[float]:
        """All places are alike."""
        return [self.estimate]

    def first(self) -> float:
        """Its first draft is worth its estimate."""
        return self.estimate

    def due(self) -> bool:
        """It is never probed."""
        return False

    def learn(self, drafts: int, accepted: int, hits: int, tested: int) -> None:
        """Eq. 3 and 4."""
        if tested:
            self.estimate = 0.9 * self.estimate + 0.1 * hits / tested
        self.goodput = 0.5 * self.goodput + 0.5 * (accepted + 1)


MEMORIES = (4.0, 16.0, 64.0, 256.0, math.inf)


@dataclass
class RobustClient:
    """What the robust policy knows of a client, with its default options."""

    every_draft: ClassVar[bool] = False

    prior: float = 0.5
    estimate: float = 0.5
    goodput: float = 1.0
    idle: int = 0
    seen: int = 0
    tokens: int = 0
    history: list[tuple[int, float, float]] = field(
        default_factory=list
    )  # drafts, estimate and goodput foretold then
    by_place: float = 0.03
    at_place: list[list[bool]] = field(default_factory=lambda: [[] for _ in range(8)])
    rates: list[float] = field(default_factory=lambda: [0.5] * 8)
    accepted: list[float] = field(default_factory=lambda: [0.0] * 5)
    trials: list[float] = field(default_factory=lambda: [0.0] * 5)
    belief: list[float] = field(default_factory=lambda: [10.0**k / 11111 for k in range(5)])

    def first(self) -> float:
        """Optimism about the first draft."""
        trials = 4.0 + math.fsum(b * t for b, t in zip(self.belief, self.trials, strict=True))
        alpha = self.rates[0]
        return min(
            1.0,
            alpha
            + 0.7 * math.sqrt(alpha * (1 - alpha) / trials * (1 + math.log(1 + self.idle / 16))),
        )

    def place_rates(self, alpha: float) -> list[float]:
        """The acceptance rate of every place as counted, where nothing is known that of the place
        before.
        """
        found = [alpha]
        for fates in self.at_place:
            found.append((sum(fates) + 16 * found[-1]) / (len(fates) + 16) if fates else found[-1])
        return found[1:]

    def due(self) -> bool:
        """Whether it has been idle for too long."""
        return self.idle >= min(200, 200 * (self.seen + 1) // 8)

    def guess(self, k: int) -> float:
        """The acceptance rate according to one memory."""
        return (self.accepted[k] + 4.0 * self.prior) / (self.trials[k] + 4.0)

    def learn(self, drafts: int, accepted: int, hits: int, tested: int) -> None:
        """Evidence, belief, estimate, goodput."""
        self.idle = 0 if tested else self.idle + 1
        if tested:
            self.seen += 1
            belief = [
                b * self.guess(k) ** hits * (1 - self.guess(k)) ** (tested - hits)
                for k, b in enumerate(self.belief)
            ]
            share = 1 / (self.seen + 1)
            self.belief = [
                (1 - share) * b / math.fsum(belief) + share * 10.0**k / 11111
                for k, b in enumerate(belief)
            ]
            self.accepted = [
                a * (1 - 1 / m) + hits for a, m in zip(self.accepted, MEMORIES, strict=True)
            ]
            self.trials = [
                t * (1 - 1 / m) + tested for t, m in zip(self.trials, MEMORIES, strict=True)
            ]
            before, by_place = self.estimate, self.place_rates(self.estimate)
            self.estimate = math.fsum(b * self.guess(k) for k, b in enumerate(self.belief))
            fates = [True] * accepted + [False] * (tested - accepted)
            alike, apart = 1 - self.by_place, self.by_place
            for j, right in enumerate(fates):
                alike *= before if right else 1 - before
                apart *= by_place[min(j, 7)] if right else 1 - by_place[min(j, 7)]
                self.at_place[min(j, 7)].append(right)
            self.by_place = (1 - share) * apart / (alike + apart) + share * 0.03
            self.rates = [
                self.estimate + self.by_place * (p - self.estimate)
                for p in self.place_rates(self.estimate)
            ]
        foretold = math.fsum(survival(self.rates, j) for j in range(drafts + 1))
        self.history.append((drafts, self.estimate, foretold))
        n = len(self.history)  # below the horizon: plain means
        mean = math.fsum(expected for _, _, expected in self.history) / n
        shift = math.fsum(
            math.fsum(j * a ** (j - 1) for j in range(1, s + 1)) * (self.estimate - a)
            for s, a, _ in self.history
        )
        self.tokens += accepted + 1
        account = (self.tokens + 200.0) / (n * mean + 200.0)
        self.goodput = max(1.0, (mean + self.belief[-1] * shift / n) * account)


def allocations(
    kind: type[GradientClient | RobustClient],
    rates: list[float],
    budget: int,
    rounds: int,
    key: int,
    run: int = 0,
) -> list[list[int]]:
    """The allocations of every round of a run with fixed rates."""
    clients = [kind() for _ in rates]
    N = len(rates)
    out = []
    for t in range(rounds):
        drafts = [0] * N
        left = budget
        for i in sorted((i for i in range(N) if clients[i].due()), key=lambda i: -clients[i].idle):
            if left:
                drafts[i] = 1
                left -= 1
        greedy(
            [1 / c.goodput for c in clients],
            [c.rates for c in clients],
            [c.first() for c in clients],
            drafts,
            left,
        )
        out.append(drafts)
        for i, client in enumerate(clients):
            fates = [fate(key, run, t * N + i, j, rates[i]) for j in range(1, drafts[i] + 1)]
            accepted = fates.index(False) if False in fates else drafts[i]
            told = fates if client.every_draft else fates[: accepted + 1]
            client.learn(drafts[i], accepted, sum(told), len(told))
    return out
