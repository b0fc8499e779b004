"""The judge's model of one verifier unit, which predicts batch sizes and the clients' cycle times.

A *unit* is one machine. It uses continuous batching: a pass starts when the previous pass has
ended, and includes every waiting client. A client's *cycle* is the time from the end of one of its
passes to the end of its next pass. The *period* is the duration of a pass. The equations are in
`docs/kinds/placement.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats

EDGE = 1e-12
"""Relative tolerance for rounding errors. A client that returns within this tolerance of the start
of a pass still joins the pass. Loads and batch sizes this close to 1 count as 1.
"""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A set of identical clients on a unit, which belong to one class and draft in the same way.

    Parameters
    ----------
    count
        Number of clients.
    new_tokens
        Number K + 1 of new tokens per client in a pass.
    context_tokens
        Number of cached tokens per client.
    tokens
        Mean number L of output tokens per client and round.
    trips
        Equally likely values of the round-trip time plus the upload time, in seconds. The array is
        a single 0 if nothing is sent.
    drafting_seconds
        Time to generate a draft after a rejection, in seconds. It is 0 if clients do not wait for
        drafts.
    ahead_seconds
        Time to generate a draft ahead during verification, in seconds. It includes a guess of the
        next token.
    held
        Probability that the tokens drafted ahead are used. It is 0 if clients do not draft ahead.
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
        """Return the time from the end of a client's pass until its next draft reaches the unit.

        The result is a pair of arrays, in seconds, with one entry per value of `trips`. The first
        array applies if the tokens drafted ahead are used (a hit), and the second array applies
        otherwise (a miss).
        """
        hit = self.trips + np.maximum(0.0, self.ahead_seconds - (period + self.trips))
        return hit, self.trips + self.drafting_seconds

    def mean_away_seconds(self, period: float) -> float:
        """Return the mean of `away_seconds` over all trip times, and over hits and misses, in
        seconds.
        """
        hit, miss = self.away_seconds(period)
        return self.held * float(hit.mean()) + (1.0 - self.held) * float(miss.mean())

    def passes_per_round(self, period: float) -> float:
        """Return n(t), the mean number of passes during a client's round, if each pass takes t =
        `period` seconds.
        """
        hit, miss = (
            np.ceil(away / period * (1.0 - EDGE)).mean() for away in self.away_seconds(period)
        )
        return 1.0 + self.held * float(hit) + (1.0 - self.held) * float(miss)

    def device_seconds(self, period: float) -> float:
        """Return the mean time that a client's device spends drafting in a round, in seconds."""
        lost = np.minimum(self.ahead_seconds, period + self.trips) + self.drafting_seconds
        return self.held * self.ahead_seconds + (1.0 - self.held) * float(lost.mean())


@dataclass(frozen=True)
class Cycles:
    """Predicted cycle times of a unit's clients, and the unit's load.

    Parameters
    ----------
    seconds
        Time from the end of one of a client's passes to the end of its next pass, in seconds, for
        each set of identical clients.
    periods
        Duration of a pass in seconds, for each set of identical clients. If the unit is lightly
        loaded, this is the duration of a pass that serves a single client of the set.
    batch
        Mean number of sequences in a pass.
    busy
        Share of time during which the unit computes.
    """

    seconds: list[float]
    periods: list[float]
    batch: float
    busy: float

    @property
    def period(self) -> float:
        """Mean duration of a pass in seconds: the mean of `periods`, weighted by 1 / `seconds`."""
        rates = [1.0 / seconds for seconds in self.seconds]
        return sum(p * rate for p, rate in zip(self.periods, rates, strict=True)) / sum(rates)


def cycles(entries: list[Entry], pass_seconds: Callable[[float, float, float], float]) -> Cycles:
    """Predict the cycle times of a unit's clients, and the unit's load.

    Parameters
    ----------
    entries
        Sets of identical clients that the unit serves.
    pass_seconds
        Function B that maps numbers of sequences, new tokens and cached tokens to the duration of a
        pass, in seconds. The duration includes prompt processing and any drafting on the verifier's
        unit.
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
