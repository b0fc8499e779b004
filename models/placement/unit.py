"""The judge of one unit of a verifier: the participants of each pass, and the length of a client's
cycle.

Engines batch continuously: a pass starts when the last one has ended and includes every waiting
client. Periods follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats

EDGE = 1e-12
"""A client that returns within this relative time after a pass begins is in time. Loads and batches
this close to 1 are 1.
"""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Clients of one class with one way to draft, on one unit.

    Parameters
    ----------
    count
        Number of clients.
    new_tokens
        Number K + 1 of new tokens of a client in a pass.
    context_tokens
        Number of cached tokens of a client.
    tokens
        Mean number L of tokens per round.
    trips
        Equally likely sums of round trip and uplink in seconds; a single 0 if nothing is sent.
    drafting_seconds
        Time from the news of a rejection to the drafts; 0 if drafts do not wait.
    ahead_seconds
        Time to draft ahead: a guess of the next token, and the drafts.
    held
        Probability that the tokens drafted ahead are used; 0 without drafting ahead.
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
        """Return the times that a client is away after a hit and after a miss, for every trip
        (contract, steps 1 and 2).
        """
        hit = self.trips + np.maximum(0.0, self.ahead_seconds - (period + self.trips))
        return hit, self.trips + self.drafting_seconds

    def mean_away_seconds(self, period: float) -> float:
        """Return the mean time away over trips, hit and miss."""
        hit, miss = self.away_seconds(period)
        return self.held * float(hit.mean()) + (1.0 - self.held) * float(miss.mean())

    def passes_per_round(self, period: float) -> float:
        """Return n(t), the mean number of passes per pass in which a client participates (step
        3).
        """
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
    """The cycles of the clients of a unit.

    Parameters
    ----------
    seconds
        Seconds of a cycle, for every entry.
    periods
        Period of every entry: that of the unit, or its own pass if the unit is lightly loaded.
    batch
        Mean number of sequences in a pass.
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
    """Return the cycles of a unit that serves some entries (steps 3 to 5).

    Parameters
    ----------
    entries
        Entries that the unit serves.
    pass_seconds
        Function B of sequences, new and cached tokens: seconds of a pass, including drafting next
        to the verifier and prompts.
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
