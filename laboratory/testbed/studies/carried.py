"""How many clients a machine carries at a rate, from sweeps whose one concurrency is withheld in
turn.

At each concurrency and draft length that were measured, every client got a certain rate. The
prediction of `specopt tune` from all other concurrencies says at how many clients each would get
just that rate; the number that did is known. Where tokens per second hardly change with the load, a
small error of theirs is a large one of clients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.sweep import Point, Sweep
from specopt.solvers.speculation_table.tuning.predictions import Predictor

FEWEST = 4
"""Concurrencies that a sweep needs: three are left to predict from."""

LEVEL = 0.9
BEYOND = 4
"""Times the largest concurrency are looked at."""
STEPS = 300


@dataclass(frozen=True, kw_only=True)
class Carried:
    """Clients at a rate.

    Parameters
    ----------
    point
        What was measured.
    rate_error
        Predicted tokens per second over measured, less 1.
    predicted
        Clients that get the measured rate, by the prediction.
    """

    point: Point
    rate_error: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted clients over those measured, less 1."""
        return self.predicted / self.point.condition.concurrency - 1.0


def carried(sweep: Sweep) -> list[Carried]:
    """Return every point of a sweep, predicted without its concurrency.

    Raises
    ------
    InvalidInput
        If there are fewer than four concurrencies.
    """
    every = sorted({one.point.condition.concurrency for one in sweep.measurements})
    if len(every) < FEWEST:
        raise InvalidInput(f"sweep: expected {FEWEST} concurrencies or more, got {len(every)}")
    measured = _measured(sweep)
    clients = np.unique(np.geomspace(1, BEYOND * every[-1], STEPS).astype(int))
    found = []
    for withheld in every:
        known = tuple(
            one for one in sweep.measurements if one.point.condition.concurrency != withheld
        )
        predictor = Predictor(Sweep(known), LEVEL)
        for point, logs in measured.items():
            if point.condition.concurrency != withheld:
                continue
            points = [
                Point(replace(point.condition, concurrency=int(count)), point.draft_length)
                for count in (withheld, *clients)
            ]
            here, *speeds = predictor.predict(points).mean.tolist()
            speed = math.exp(sum(logs) / len(logs))
            found.append(
                Carried(
                    point=point,
                    rate_error=here / speed - 1.0,
                    predicted=last_at(clients, np.array(speeds) / clients, speed / withheld),
                )
            )
    return found


def repeated(sweep: Sweep) -> list[float]:
    """Return errors of clients where nothing is withheld: the first runs are known, the second ask.

    What the machine does differently at another time is all of it. Without repetitions there are
    none, and the least and the most concurrency are left out.
    """
    found = []
    measured = _measured(sweep)
    for length in {point.draft_length for point in measured}:
        runs = {
            point.condition.concurrency: np.exp(logs)
            for point, logs in measured.items()
            if point.draft_length == length and len(logs) > 1
        }
        counts = np.array(sorted(runs))
        first, second = (
            np.array([runs[count][at] / count for count in sorted(runs)]) for at in (0, 1)
        )
        found += [
            last_at(counts, first, second[k]) / counts[k] - 1.0 for k in range(1, len(counts) - 1)
        ]
    return found


def _measured(sweep: Sweep) -> dict[Point, list[float]]:
    """Return logs of tokens per second of all runs of each point."""
    found: dict[Point, list[float]] = {}
    for one in sweep.measurements:
        if one.tokens_per_second:
            found.setdefault(one.point, []).append(math.log(one.tokens_per_second))
    return found


def last_at(clients: np.ndarray, rates: np.ndarray, least: float) -> float:
    """Return the most clients whose rate is as large as asked, interpolated as a power law between
    counts.

    None if no rate is, infinitely many if all are.

    Examples
    --------
    >>> last_at(np.array([1, 2, 4]), np.array([8.0, 4.0, 1.0]), 2.0)
    2.8284271247461903
    """
    enough = np.flatnonzero(rates >= least)
    if not len(enough):
        return 0.0
    at = int(enough[-1])
    if at + 1 == len(clients):
        return math.inf
    share = np.log(rates[at] / least) / np.log(rates[at] / rates[at + 1])
    return float(clients[at] * (clients[at + 1] / clients[at]) ** share)
