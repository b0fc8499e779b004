"""Throughput at any load and draft length, from a sweep: a mean and a band for every point.

Two things are regressed, both in logarithms, as sums of effects of load, draft length and workload: the seconds of a
step (concurrency x acceptance length / throughput), and the rate of acceptance. Bands are those of the regression,
widened or narrowed by how far held-out measurements fell from it (split-conformal, on standardised residuals): for
a workload of which only some points are known, every other workload is held out but for the same points; else every
point in turn. What was measured is predicted as measured. Between measured points all is taken to be smooth, with jumps
over the load: a spike at a single unmeasured point lies outside any band.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specopt.models.acceptance import expected_tokens
from specopt.models.arguments import number
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats
from specopt.models.sweep import Measurement, Point, Sweep
from specopt.solvers.speculation_table.tuning.regression import Records, Regression, Term

NOISE = 0.008
"""Standard deviation of a run's log throughput where no point was repeated often enough to tell."""

IDLE_COST = (0.0, 0.07, 0.22)
"""Share of throughput that an engine loses by speculating with 0 drafts: least, usual and most that was ever reported;
counts where draft length 0 was not measured."""

_EDGE = 1e-4  # rates closer to 0 or 1 count as this far from them
_IDLE_SPREAD = 0.06  # standard deviation of its logarithm
_FEWEST_REPEATS = 3  # degrees of freedom from which on repetitions say how noisy a run is
_CENTRE = 1.4  # log(1 + K) about which workloads' slopes turn: K = 3
_FEATURES = np.dtype([("workload", "i8"), ("load", "f8"), ("context", "f8"), ("drafts", "b1"), ("length", "f8")])


def _both(a: Records, b: Records) -> Floats:
    return np.asarray(a["drafts"] & b["drafts"], dtype=np.float64)


def _same(a: Records, b: Records) -> Floats:
    return np.asarray(a["workload"] == b["workload"], dtype=np.float64)


def _alike(a: Records, b: Records) -> Floats:
    """Return 1 for the same load and draft length, whatever the workload: where a staircase has its steps."""
    same = (a["load"] == b["load"]) & (a["context"] == b["context"])
    return np.asarray(same & (a["drafts"] == b["drafts"]) & (a["length"] == b["length"]), dtype=np.float64)


def _near(a: Records, b: Records, name: str, width: float) -> Floats:
    return np.asarray(np.exp(-0.5 * ((a[name] - b[name]) / width) ** 2))


def _walk(a: Records, b: Records) -> Floats:
    """Return the covariance of a random walk over the load from the smallest one on: what has jumps anywhere."""
    return np.asarray(np.minimum(a["load"], b["load"]))


def _slopes(a: Records, b: Records) -> Floats:
    return np.asarray((a["length"] - _CENTRE) * (b["length"] - _CENTRE))


STEP_TERMS = (
    Term(3.0, lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape)), learned=False),
    Term(1.0, lambda a, b: a["load"] * b["load"], learned=False),
    Term(0.3, lambda a, b: a["context"] * b["context"], learned=False),
    Term(1.0, _both, learned=False),
    Term(0.5, lambda a, b: _both(a, b) * a["length"] * b["length"], learned=False),
    Term(0.1, lambda a, b: _both(a, b) * a["context"] * b["context"]),
    Term(0.1, _walk),
    Term(0.02, lambda a, b: _both(a, b) * _near(a, b, "length", 0.7)),
    Term(0.1, lambda a, b: _both(a, b) * _walk(a, b) * _near(a, b, "length", 0.7)),
    Term(0.1, lambda a, b: _both(a, b) * _walk(a, b) * _near(a, b, "context", 0.7) * _near(a, b, "length", 0.7)),
    Term(0.003, _alike),
    Term(0.1, _same),
    Term(0.05, lambda a, b: _same(a, b) * _both(a, b)),
    Term(0.05, lambda a, b: _same(a, b) * _both(a, b) * _slopes(a, b)),
)
"""Log seconds of a step: what all workloads share, and how each differs."""

ACCEPTANCE_TERMS = (
    Term(3.0, lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape)), learned=False),
    Term(0.5, lambda a, b: a["length"] * b["length"], learned=False),
    Term(0.1, lambda a, b: _near(a, b, "length", 1.0)),
    Term(0.5, _same),
    Term(0.1, lambda a, b: _same(a, b) * _near(a, b, "length", 1.0)),
)
"""Logit of the acceptance rate; load and context are taken to leave it as it is."""


def logit_rate(acceptance_length: Floats, draft_length: Floats) -> Floats:
    """Return log(a / (1 - a)) of the constant rate a that yields the acceptance lengths; arrays of one shape.

    A constant rate a yields 1 + a + ... + a^K tokens a step. The rate that explains what was measured drifts slowly
    with K, so it is what is interpolated.
    """
    low, high = np.zeros_like(acceptance_length), np.ones_like(acceptance_length)
    for _ in range(50):
        middle = 0.5 * (low + high)
        below = expected_tokens(middle, draft_length) < acceptance_length
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    rate = np.clip(0.5 * (low + high), _EDGE, 1.0 - _EDGE)
    return np.asarray(np.log(rate / (1.0 - rate)))


def tokens_of(logit: Floats, draft_length: Floats) -> tuple[Floats, Floats]:
    """Return the acceptance lengths of rates given by their logits, and d log(AL) / d logit; 1 and 0 for K = 0."""
    rate = np.clip(1.0 / (1.0 + np.exp(-logit)), _EDGE, 1.0 - _EDGE)
    tokens = expected_tokens(rate, draft_length)
    powers = rate**draft_length
    # d/da of (1 - a^(K+1)) / (1 - a)
    slope = (tokens - (draft_length + 1.0) * powers) / (1.0 - rate)
    return tokens, slope * rate * (1.0 - rate) / tokens


@dataclass(frozen=True, eq=False)
class Predictions:
    """Throughput of points in tokens per second; bands are symmetric in its logarithm.

    Parameters
    ----------
    points
        What was asked.
    mean, low, high
        Tokens per second, and the limits of the band.
    deviation
        Standard deviation of log throughput that the bands are made of.
    measured
        Whether the point was measured itself.
    """

    points: tuple[Point, ...]
    mean: Floats
    low: Floats
    high: Floats
    deviation: Floats
    measured: NDArray[np.bool_]


@dataclass(frozen=True)
class _Observed:
    """The runs of one point: mean throughput, its logarithm, how many, mean acceptance length; NaN where unknown."""

    speed: float
    throughput: float
    runs: int
    acceptance: float


class Predictor:
    """What a sweep says of points that it holds and of others.

    Parameters
    ----------
    sweep
        Runs with and without speculation.
    confidence
        Share of runs that the bands are to hold.

    Raises
    ------
    InvalidInput
        If nothing was measured without speculation, or nothing with it.
    """

    def __init__(self, sweep: Sweep, confidence: float = 0.9) -> None:
        from scipy.stats import norm

        self.sweep = sweep.with_none()
        self.confidence = number("confidence", confidence, above=0, below=1)
        self.notes = list(self.sweep.notes)
        self._normal = float(norm.ppf(0.5 + 0.5 * self.confidence))
        self._workloads = {name: k for k, name in enumerate(self.sweep.workloads)}
        self._least = min(condition.concurrency for condition in self.sweep.conditions)
        self._observed = self._gather()
        timed = [point for point, seen in self._observed.items() if seen.runs]
        if self.sweep.relative is None and all(point.draft_length is not None for point in timed):
            raise InvalidInput("sweep: expected a run without speculation (draft_length none): that is the comparison")
        if all(point.draft_length is None for point in timed):
            raise InvalidInput("sweep: expected a run with speculation (a draft_length), got none")
        self._bases: list[Point] = []
        self._timed, self._steps = self._fit_steps(timed)
        self._accepted, self._acceptance = self._fit_acceptance()
        self._factors: dict[str, float] = {}

    # ------------------------------------------------------------------ fits

    def _gather(self) -> dict[Point, _Observed]:
        runs: dict[Point, list[Measurement]] = defaultdict(list)
        for measurement in self.sweep.measurements:
            runs[measurement.point].append(measurement)
        drafting = [m for m in self.sweep.measurements if m.point.draft_length]
        lacking = sum(m.acceptance_length is None for m in drafting)
        self.has_acceptance = lacking == 0 and bool(drafting)
        if 0 < lacking < len(drafting):
            self.notes.append(
                f"mean_acceptance_length is missing in {lacking} of {len(drafting)} rows that draft: it was not used"
            )
        squares, degrees = 0.0, 0
        observed = {}
        for point, several in runs.items():
            logs = np.log([m.tokens_per_second for m in several if m.tokens_per_second is not None])
            lengths = [m.acceptance_length for m in several if m.acceptance_length is not None]
            if not len(logs) and not self.has_acceptance:
                continue
            if len(logs) > 1:
                squares, degrees = squares + float(((logs - logs.mean()) ** 2).sum()), degrees + len(logs) - 1
            mean = float(logs.mean()) if len(logs) else math.nan
            speed = math.exp(mean) if len(several) > 1 else several[0].tokens_per_second or math.nan
            known = float(np.mean(lengths)) if lengths and point.draft_length else math.nan
            observed[point] = _Observed(speed, mean, len(logs), known)
        self.repeats = degrees
        if degrees < _FEWEST_REPEATS:
            self.notes.append(f"too few points were repeated to tell how noisy runs are: {NOISE:.1%} is assumed")
        self.noise = NOISE if degrees < _FEWEST_REPEATS else max(math.sqrt(squares / degrees), 1e-4)
        return observed

    def _fit_steps(self, timed: Sequence[Point]) -> tuple[list[Point], Regression]:
        timed = list(timed)
        # without drafts a step lasts about as long as without speculation: what is shorter than measured lies between
        if 0 not in self.sweep.draft_lengths:
            self._bases = [point for point in timed if point.draft_length is None]
        idle = [Point(base.condition, 0) for base in self._bases]
        values = [
            math.log(point.condition.concurrency)
            + (math.log(self._observed[point].acceptance) if self.has_acceptance and point.draft_length else 0.0)
            - self._observed[point].throughput
            for point in timed
        ]
        cost = 0.0 if self.sweep.zero_is_none else -math.log1p(-IDLE_COST[1])
        values += [
            math.log(base.condition.concurrency) - self._observed[base].throughput + cost for base in self._bases
        ]
        runs = np.array(
            [float(self._observed[point].runs) for point in timed] + [(self.noise / _IDLE_SPREAD) ** 2] * len(idle)
        )
        sure = {"sure": 1.0 / math.sqrt(2.0 * self.repeats)} if self.repeats >= _FEWEST_REPEATS else {}
        features = self._features([*timed, *idle])
        return timed, Regression(STEP_TERMS, features, np.array(values), runs, self.noise, **sure)

    def _fit_acceptance(self) -> tuple[list[Point], Regression | None]:
        if not self.has_acceptance:
            return [], None
        points = [point for point, seen in self._observed.items() if point.draft_length and seen.acceptance > 0.0]
        lengths = np.array([float(point.draft_length or 0) for point in points])
        logits = logit_rate(np.array([self._observed[point].acceptance for point in points]), lengths)
        return points, Regression(ACCEPTANCE_TERMS, self._features(points), logits, np.ones(len(points)), NOISE)

    def _features(self, points: Sequence[Point]) -> Records:
        rows = [
            (
                self._workloads.get(point.condition.workload, -1),
                math.log(point.condition.concurrency / self._least),
                math.log1p(point.condition.context_tokens / 1000.0),
                point.draft_length is not None,
                math.log1p(point.draft_length or 0),
            )
            for point in points
        ]
        return np.array(rows, dtype=_FEATURES)

    # ------------------------------------------------------------------ predictions

    def predict(self, points: Iterable[Point]) -> Predictions:
        """Return the throughput of points, with bands; what was measured as it was measured."""
        points = tuple(points)
        mean, variance = self._logarithms(points)
        deviation = np.sqrt(variance)
        for name in sorted({point.condition.workload for point in points}):
            mine = np.array([point.condition.workload == name for point in points])
            deviation[mine] *= self._factor(name)
        measured = np.array([point in self._observed and self._observed[point].runs > 0 for point in points])
        for k in np.flatnonzero(measured):
            seen = self._observed[points[k]]
            mean[k], deviation[k] = seen.throughput, self.noise / math.sqrt(seen.runs)
        reach = self._normal * deviation
        speed = np.exp(mean)
        speed[measured] = [self._observed[points[k]].speed for k in np.flatnonzero(measured)]  # to the last digit
        return Predictions(points, speed, np.exp(mean - reach), np.exp(mean + reach), deviation, measured)

    def speedup_reach(self, found: Predictions) -> Floats:
        """Return half the width of the bands of log speed-ups against no speculation at the same loads.

        What both share, such as how throughput lies between two measured loads, does not widen them.
        """
        place = {condition: k for k, condition in enumerate(dict.fromkeys(p.condition for p in found.points))}
        none = self.predict(Point(condition, self.sweep.relative) for condition in place)
        at = np.array([place[point.condition] for point in found.points])
        square = found.deviation**2 + none.deviation[at] ** 2
        both = np.flatnonzero(~(found.measured | none.measured[at]))
        if len(both):
            points, base = [found.points[k] for k in both], [none.points[at[k]] for k in both]
            shared = self._steps.covariance(self._features(points), self._features(base))
            factors = [self._factor(point.condition.workload) for point in points]
            square[both] -= 2.0 * np.array(factors) ** 2 * shared
        return np.asarray(self._normal * np.sqrt(np.maximum(square, 0.0)))

    def acceptance_length(self, point: Point) -> float | None:
        """Return the mean acceptance length that is expected of a point; None if the sweep holds none."""
        if self._acceptance is None or not point.draft_length:
            return None
        logit, _ = self._acceptance.predict(self._features([point]))
        return float(tokens_of(logit, np.array([float(point.draft_length)]))[0][0])

    def _logarithms(
        self, points: Sequence[Point], timed: NDArray[np.bool_] | None = None, accepted: NDArray[np.bool_] | None = None
    ) -> tuple[Floats, Floats]:
        """Return mean and variance of the log throughput of new runs, from all observations or those to keep."""
        features = self._features(points)
        if timed is not None:  # what is taken for 0 drafts goes with what it is derived from
            kept = {point for point, keep in zip(self._timed, timed, strict=True) if keep}
            timed = np.append(timed, np.array([base in kept for base in self._bases], dtype=bool))
        mean, variance = self._steps.predict(features, timed)
        logit, spread = np.zeros((2, len(points)))
        if self._acceptance is not None:
            logit, spread = self._acceptance.predict(features, accepted)
        return self._throughput(points, mean, variance, logit, spread)

    def _throughput(
        self, points: Sequence[Point], step: Floats, variance: Floats, logit: Floats, spread: Floats
    ) -> tuple[Floats, Floats]:
        load = np.log([float(point.condition.concurrency) for point in points])
        if self._acceptance is None:
            return load - step, variance
        tokens, slope = tokens_of(logit, np.array([float(point.draft_length or 0) for point in points]))
        return load + np.log(tokens) - step, variance + slope**2 * spread

    def _factor(self, workload: str) -> float:
        """Return by how much the bands of a workload are wider than the regression's own."""
        if workload not in self._factors:
            misses = self._misses_of_others(workload)
            if not len(misses):
                misses = self._misses_of_each()
            rank = math.ceil(self.confidence * (len(misses) + 1))
            factor = float(np.sort(misses)[min(rank, len(misses)) - 1]) / self._normal
            # a handful of residuals may widen a band, but not narrow it
            self._factors[workload] = factor if rank <= len(misses) and len(misses) >= 2 * 9 else max(factor, 1.0)
        return self._factors[workload]

    def _misses_of_each(self) -> Floats:
        """Return standardised residuals of every measured point, predicted from all others."""
        step, variance = (found[: len(self._timed)] for found in self._steps.leave_one_out())
        logit, spread = np.zeros((2, len(self._timed)))
        if self._acceptance is not None:
            row = {point: k for k, point in enumerate(self._accepted)}
            alone = self._acceptance.leave_one_out()
            for k, point in enumerate(self._timed):
                if point in row:
                    logit[k], spread[k] = alone[0][row[point]], alone[1][row[point]]
        mean, variance = self._throughput(self._timed, step, variance, logit, spread)
        return self._standardised(self._timed, mean, variance)

    def _misses_of_others(self, workload: str) -> Floats:
        """Return standardised residuals of other workloads, each held out but for what is known of this one."""
        known = {_place(p) for p in self._timed if p.condition.workload == workload}
        heard = {_place(p) for p in self._accepted if p.condition.workload == workload}
        found: list[Floats] = []
        for other in self._workloads.keys() - {workload}:
            hidden = [p for p in self._timed if p.condition.workload == other and _place(p) not in known]
            if not hidden:
                continue
            timed = np.array([p.condition.workload != other or _place(p) in known for p in self._timed])
            accepted = np.array([p.condition.workload != other or _place(p) in heard for p in self._accepted])
            if not timed.any() or (self._acceptance is not None and not accepted.any()):
                continue
            mean, variance = self._logarithms(hidden, timed, accepted)
            found.append(self._standardised(hidden, mean, variance))
        return np.concatenate(found) if found else np.empty(0)

    def _standardised(self, points: Sequence[Point], mean: Floats, variance: Floats) -> Floats:
        truth = np.array([self._observed[point].throughput for point in points])
        return np.asarray(np.abs(truth - mean) / np.sqrt(variance))


def _place(point: Point) -> tuple[int, int, int | None]:
    """Return where a point lies, whatever the workload."""
    return point.condition.concurrency, point.condition.context_tokens, point.draft_length
