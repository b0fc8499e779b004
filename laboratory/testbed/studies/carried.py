"""The number of clients that a machine serves at a given rate, from sweeps with one concurrency
withheld in turn.

At each measured concurrency and draft length, every client had a certain rate. From all other
concurrencies, `specopt tune` predicts the number of clients at which each would have just this
rate. The true number is known. If tokens per second hardly change with the load, a small error in
them is a large error in the number of clients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.sweep import Point, Sweep
from specopt.solvers.speculation_table.tuning.predictions import Predictor

FEWEST = 4
"""Minimum number of concurrencies of a sweep, so that three remain for the prediction."""

LEVEL = 0.9
BEYOND = 4
"""Largest number of clients considered, relative to the largest concurrency."""
STEPS = 300


@dataclass(frozen=True, kw_only=True)
class Carried:
    """The number of clients at a rate.

    Parameters
    ----------
    point
        The measured point.
    rate_error
        Predicted divided by measured tokens per second, minus 1.
    predicted
        Predicted number of clients at the measured rate.
    """

    point: Point
    rate_error: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted divided by measured number of clients, minus 1."""
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
    """Return the errors of the number of clients if nothing is withheld. The first runs are known,
    and the second ones are predicted.

    These errors are only the differences of the machine between two times. Points without
    repetitions are omitted, and so are the smallest and the largest concurrency.
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
    """Return the logarithms of tokens per second of all runs of each point."""
    found: dict[Point, list[float]] = {}
    for one in sweep.measurements:
        if one.tokens_per_second:
            found.setdefault(one.point, []).append(math.log(one.tokens_per_second))
    return found


def last_at(clients: np.ndarray, rates: np.ndarray, least: float) -> float:
    """Return the maximum number of clients whose rate is at least the required one, interpolated as
    a power law between the given numbers.

    Return None if no rate is large enough, and infinity if all are.

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
