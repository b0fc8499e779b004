"""Predictions of the throughput at any load and draft length, based on a sweep of measurements.

Every point has a mean and a band. For measured points, the mean is the measured value. For all
other points, the mean is predicted by the throughput law (see `law`). The mean and the band are
then clipped to the bounds that follow from the number of tokens per step (see `limits`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from specopt.models.arguments import number
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Truths
from specopt.models.sweep import Measurement, Point, Sweep
from specopt.solvers.speculation_table.tuning.bands import Bands
from specopt.solvers.speculation_table.tuning.law import Law
from specopt.solvers.speculation_table.tuning.limits import Limits

NOISE = 0.008
"""Default standard deviation of a run's log throughput.

It is used if too few runs were repeated for an estimate.
"""

_HALF = 0.5  # coverage of the bands on which choices are based
_FEWEST_REPEATS = 3  # minimum degrees of freedom for estimating the noise from repetitions


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted throughput at several points.

    Parameters
    ----------
    mean, low, high
        Predicted throughput in tokens per second, and the lower and upper ends of its band.
    less, more
        Distances of the lower and the upper end of the log speed-up's band from the mean.
    doubt
        Half-width of the band of the log speed-up with a coverage of 50 %.
    measured
        Whether each point was measured.
    """

    mean: Floats
    low: Floats
    high: Floats
    less: Floats
    more: Floats
    doubt: Floats
    measured: Truths


class Predictor:
    """Predictor of the throughput at measured and unmeasured points, based on a sweep.

    Parameters
    ----------
    sweep
        Measured runs with and without speculation.
    confidence
        Nominal coverage of the bands.

    Raises
    ------
    InvalidInput
        If the sweep contains no run with speculation.
    """

    def __init__(self, sweep: Sweep, confidence: float = 0.9) -> None:
        self.sweep = sweep.with_none()
        self.confidence = number("confidence", confidence, above=0, below=1)
        self.notes = list(self.sweep.notes)
        self.runs: dict[Point, list[Measurement]] = defaultdict(list)
        speeds: dict[Point, list[float]] = defaultdict(list)
        lengths: dict[Point, list[float]] = defaultdict(list)
        for one in self.sweep.measurements:
            self.runs[one.point].append(one)
            if one.tokens_per_second:
                speeds[one.point].append(one.tokens_per_second)
            if one.acceptance_length and one.point.draft_length:
                lengths[one.point].append(one.acceptance_length)
        if all(point.draft_length is None for point in speeds):
            expected = "sweep: expected a run with speculation (a draft_length), got none"
            raise InvalidInput("; ".join([expected, *self.notes]))
        self._speeds = {  # a single run is kept without rounding
            point: own[0] if len(own) == 1 else math.exp(np.log(own).mean())
            for point, own in speeds.items()
        }
        self._lengths = {point: float(np.mean(own)) for point, own in lengths.items()}
        self.has_acceptance = bool(lengths)
        self._noise = self._noise_of([np.log(own) for own in speeds.values()])
        self._runs = {point: len(own) for point, own in speeds.items()}
        per_request = {p: math.log(x / p.condition.concurrency) for p, x in self._speeds.items()}
        self._law = Law(per_request, self._lengths)
        self._bands = Bands(per_request, self._lengths)
        self.is_sequential = all(setup.is_sequential for setup in self.sweep.setups)
        self._limits = Limits(per_request, self._lengths, self.is_sequential)
        self.notes += self._limits.notes

    def predict(self, points: Iterable[Point]) -> Predictions:
        """Return the predicted throughput at `points`, with bands.

        At measured points, the means are the measured values.
        """
        points = tuple(points)
        base = [Point(point.condition, self.sweep.relative) for point in points]
        mean, none = self._mean(points), self._mean(base)
        measured, alone = (np.array([p in self._speeds for p in of]) for of in (points, base))
        most = none + [self._limits.log_speedup(point) for point in points]
        left = np.where(measured, np.inf, most - np.minimum(mean, most))
        mean = np.where(measured, mean, np.minimum(mean, most))
        reach, apart = self._widths(points, base, measured | alone, self.confidence)
        _, doubt = self._widths(points, base, measured | alone, _HALF)
        speed = np.exp(mean)
        speed[measured] = [self._speeds[point] for point in points if point in self._speeds]
        return Predictions(
            speed,
            np.exp(mean - reach),
            np.exp(mean + np.minimum(reach, left)),
            apart,
            np.minimum(apart, left),
            doubt,
            measured,
        )

    def acceptance_length(self, point: Point) -> float | None:
        """Return the expected acceptance length at a point.

        The result is None if the point has no drafts or the sweep contains no acceptance lengths.
        """
        if not self.has_acceptance or not point.draft_length:
            return None
        return self._lengths.get(point) or float(self._law.tokens([point])[0])

    def _noise_of(self, logs: Sequence[Floats]) -> float:
        """Return the standard deviation of a run's log throughput, estimated from repeated runs."""
        degrees = sum(len(own) - 1 for own in logs)
        if degrees < _FEWEST_REPEATS:
            self.notes.append(
                f"too few points were repeated to tell how noisy runs are: {NOISE:.1%} is assumed"
            )
            return NOISE
        squares = sum(float(((own - own.mean()) ** 2).sum()) for own in logs)
        return max(math.sqrt(squares / degrees), 1e-4)

    def _mean(self, points: Sequence[Point]) -> Floats:
        found = self._law.at(points) + np.log([point.condition.concurrency for point in points])
        known = np.log([self._speeds.get(point, 1.0) for point in points])
        return np.where([point in self._speeds for point in points], known, found)

    def _widths(
        self, points: Sequence[Point], base: Sequence[Point], seen: Truths, confidence: float
    ) -> tuple[Floats, Floats]:
        """Return the half-widths of the bands for the log throughput and for the log speed-up.

        The speed-up of each point is relative to the base point at the same index. If neither a
        point nor its base point was measured, the errors at the two points are correlated, and the
        half-width for the speed-up is estimated directly.
        """
        from scipy.stats import norm

        noise = float(norm.ppf(0.5 + 0.5 * confidence)) * self._noise

        def own(point: Point) -> tuple[float, float]:
            if point in self._runs:
                return (noise / math.sqrt(self._runs[point]),) * 2
            speed, gain = self._bands.at(point, confidence)
            return max(speed, noise), max(gain, noise)

        reach, apart = np.array([own(point) for point in points]).T
        alone = np.array([own(point)[0] for point in base])
        same = np.array([a == b for a, b in zip(points, base, strict=True)])
        return reach, np.where(same, 0.0, np.where(seen, np.hypot(reach, alone), apart))
