"""The judge of one unit of a verifier: who takes part in which pass, and how long a client's cycle
is.

Engines batch continuously: a pass starts when the last one ended and takes everybody who waits.
Periods follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats

EDGE = 1e-12
"""Relative: who comes back so shortly after a pass begins is in time, and loads and batches so
close to 1 are 1.
"""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Clients of one class with one way to draft, on one unit.

    Parameters
    ----------
    count
        How many clients.
    new_tokens
        Of a client in a pass: K + 1.
    context_tokens
        Tokens that it has cached.
    tokens
        L, tokens that a round yields.
    trips
        Equally likely round trips and uplink together, seconds; one 0 where nothing is sent.
    drafting_seconds
        From the news of a rejection to the drafts; 0 where drafts wait for nothing.
    ahead_seconds
        What drafting ahead takes: a guess of the next token, and the drafts.
    held
        Probability that what was drafted ahead holds; 0 where nothing is.
    """

    count: int
    new_tokens: int
    context_tokens: int
    tokens: float
    trips: Floats
    drafting_seconds: float = 0.0
    ahead_seconds: float = 0.0
    held: float = 0.0

    def away_seconds(self, period: float) -> tuple[Floats, Floats]:
        """Return how long it is away after a hit and after a miss, for every trip (contract, step 1
        and 2).
        """
        hit = self.trips + np.maximum(0.0, self.ahead_seconds - (period + self.trips))
        return hit, self.trips + self.drafting_seconds

    def mean_away_seconds(self, period: float) -> float:
        """Return the mean over trips, hit and miss."""
        hit, miss = self.away_seconds(period)
        return self.held * float(hit.mean()) + (1.0 - self.held) * float(miss.mean())

    def passes_per_round(self, period: float) -> float:
        """Return n(t): a client takes part in one of so many passes, on average (step 3)."""
        hit, miss = (
            np.ceil(away / period * (1.0 - EDGE)).mean() for away in self.away_seconds(period)
        )
        return 1.0 + self.held * float(hit) + (1.0 - self.held) * float(miss)

    def device_seconds(self, period: float) -> float:
        """Return the seconds that a device drafts in a round (rule 9)."""
        lost = np.minimum(self.ahead_seconds, period + self.trips) + self.drafting_seconds
        return self.held * self.ahead_seconds + (1.0 - self.held) * float(lost.mean())


@dataclass(frozen=True)
class Cycles:
    """How a unit runs.

    Parameters
    ----------
    seconds
        Of a cycle, for every entry.
    periods
        What an entry sees as the period: that of the unit, or its own pass where the unit is
        lightly loaded.
    batch
        Mean sequences of a pass.
    busy
        Share of the time in which the unit computes.
    """

    seconds: list[float]
    periods: list[float]
    batch: float
    busy: float

    @property
    def period(self) -> float:
        """Mean time of a pass."""
        rates = [1.0 / seconds for seconds in self.seconds]
        return sum(p * rate for p, rate in zip(self.periods, rates, strict=True)) / sum(rates)


def cycles(entries: list[Entry], pass_seconds: Callable[[float, float, float], float]) -> Cycles:
    """Return how a unit runs that serves some entries (steps 3 to 5).

    Parameters
    ----------
    entries
        Whom it serves.
    pass_seconds
        B of sequences, new and cached tokens: seconds of a pass, drafting beside it and prompts
        included.
    """

    def period(n: list[float]) -> float:
        return pass_seconds(
            sum(e.count / k for e, k in zip(entries, n, strict=True)),
            sum(e.count * e.new_tokens / k for e, k in zip(entries, n, strict=True)),
            sum(e.count * e.context_tokens / k for e, k in zip(entries, n, strict=True)),
        )

    alone = [pass_seconds(1, e.new_tokens, e.context_tokens) for e in entries]
    away = [e.mean_away_seconds(p) for e, p in zip(entries, alone, strict=True)]
    waits = [0.5 * p * p / (a + p) for a, p in zip(away, alone, strict=True)]
    light = [
        a + p + sum((f.count - (f is e)) * wait for f, wait in zip(entries, waits, strict=True))
        for e, a, p in zip(entries, away, alone, strict=True)
    ]
    load = math.fsum(e.count * p / c for e, p, c in zip(entries, alone, light, strict=True))
    if load > 1.0 + EDGE:
        n = [1.0] * len(entries)
        while (
            batch := math.fsum(e.count / k for e, k in zip(entries, n, strict=True))
        ) >= 1.0 - EDGE:
            t = period(n)
            later = [e.passes_per_round(t) for e in entries]
            if later == n:
                return Cycles([k * t for k in n], [t] * len(entries), batch, 1.0)
            n = later
    slower = max(1.0, load)
    return Cycles([c * slower for c in light], alone, 1.0, min(1.0, load))
