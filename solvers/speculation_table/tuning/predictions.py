"""Throughput at any load and draft length, from a sweep: a mean and a band for every point.

Two things are regressed, both in logarithms. One is the seconds of a step (concurrency x acceptance
length / throughput), as a law of pass times with effects of load, draft length and workload. The
other is the rate of acceptance; where no acceptance length is known, its rate is a parameter of the
law. Bands are those of the regression, widened or narrowed by how far held-out measurements fell
from it (split-conformal, on standardised residuals). Points like the one in question are held out.
For a workload with only some known points, it is every other workload but for the same points. For
an unmeasured draft length or load, it is each measured one in turn; else every point in turn. What
was measured is predicted as measured. Between measured points all is taken to be smooth, with jumps
over the load: a spike at a single unmeasured point lies outside any band.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.acceptance import expected_tokens
from specopt.models.arguments import number
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Truths
from specopt.models.sweep import Measurement, Point, Sweep
from specopt.solvers.speculation_table.tuning.regression import Law, Records, Regression, Term

NOISE = 0.008
"""Standard deviation of a run's log throughput where no point was repeated often enough to tell."""

IDLE_COST = (0.0, 0.07, 0.22)
"""Share of throughput that an engine loses by speculating with 0 drafts: least, usual and most that
was ever reported; counts where draft length 0 was not measured."""

_EDGE = 1e-4  # rates closer to 0 or 1 count as this far from them
_IDLE_SPREAD = 0.06  # standard deviation of its logarithm
_ENOUGH = 18  # groups held out from which on their misses alone say how wide bands are
_FEWEST_REPEATS = 3  # degrees of freedom from which on repetitions say how noisy a run is
_CENTRE = 1.4  # log(1 + K) about which workloads' slopes turn: K = 3
_FEATURES = np.dtype(
    [("workload", "i8"), ("load", "f8"), ("context", "f8"), ("drafts", "b1"), ("length", "f8")]
)


def _both(a: Records, b: Records) -> Floats:
    return np.asarray(a["drafts"] & b["drafts"], np.float64)


def _same(a: Records, b: Records) -> Floats:
    return np.asarray(a["workload"] == b["workload"], np.float64)


def _alike(a: Records, b: Records) -> Floats:
    """Return 1 for the same load and draft length, whatever the workload: where a staircase has its
    steps.
    """
    same = (a["load"] == b["load"]) & (a["context"] == b["context"])
    return np.asarray(
        same & (a["drafts"] == b["drafts"]) & (a["length"] == b["length"]), np.float64
    )


def _near(a: Records, b: Records, name: str, width: float) -> Floats:
    return np.asarray(np.exp(-0.5 * ((a[name] - b[name]) / width) ** 2))


def _walk(a: Records, b: Records) -> Floats:
    """Return the covariance of a random walk over the load from the smallest one on: what has jumps
    anywhere.
    """
    return np.asarray(np.minimum(a["load"], b["load"]))


def _slopes(a: Records, b: Records) -> Floats:
    return (a["length"] - _CENTRE) * (b["length"] - _CENTRE)


def _bends(a: Records, b: Records) -> Floats:
    return np.asarray((a["length"] * b["length"]) ** 2)


STEP_TERMS = (
    Term(3.0, lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape)), spread=0.0),
    Term(0.3, lambda a, b: a["load"] * b["load"], spread=0.0),
    Term(0.3, lambda a, b: a["context"] * b["context"], spread=0.0),
    Term(0.1, _both, spread=0.0),
    Term(0.1, lambda a, b: _both(a, b) * a["context"] * b["context"]),
    Term(0.1, _walk),
    Term(0.1, lambda a, b: _both(a, b) * a["length"] * b["length"]),
    Term(0.05, lambda a, b: _both(a, b) * _bends(a, b)),
    Term(0.03, lambda a, b: _both(a, b) * _walk(a, b) * _near(a, b, "context", 0.7)),
    Term(0.03, lambda a, b: _both(a, b) * _walk(a, b) * a["length"] * b["length"]),
    Term(0.015, lambda a, b: _both(a, b) * _walk(a, b) * _bends(a, b)),
    Term(
        0.01, _alike, spread=0.7
    ),  # with more freedom it explains two draft lengths alone, and leaves the law nothing
    Term(0.1, _same),
    Term(0.05, lambda a, b: _same(a, b) * _both(a, b)),
    Term(0.05, lambda a, b: _same(a, b) * _both(a, b) * _slopes(a, b)),
)
"""Log seconds of a step, beside its law: what all workloads share, and how each differs."""

PASSES = (-2.8, -5.3), (1.0, 1.5)
"""Mean and standard deviation of log d and log s: a draft token costs d passes, a token more in a
pass s of it.
"""

ACCEPTANCE = (1.0,), (1.0,)
"""The same of the logit of the rate of acceptance, where no acceptance length is known."""

ACCEPTANCE_TERMS = (
    Term(3.0, lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape)), spread=0.0),
    Term(0.5, lambda a, b: a["length"] * b["length"], spread=0.0),
    Term(0.1, lambda a, b: _near(a, b, "length", 1.0)),
    Term(0.5, _same),
    Term(0.1, lambda a, b: _same(a, b) * _near(a, b, "length", 1.0)),
)
"""Logit of the acceptance rate; load and context are taken to leave it as it is."""


def logit_rate(acceptance_length: Floats, draft_length: Floats) -> Floats:
    """Return log(a / (1 - a)) of the constant rate a that yields the acceptance lengths; arrays of
    one shape.

    A constant rate a yields 1 + a + ... + a^K tokens a step. The rate that explains what was
    measured drifts slowly with K, so it is what is interpolated.
    """
    low, high = np.zeros_like(acceptance_length), np.ones_like(acceptance_length)
    for _ in range(50):
        middle = 0.5 * (low + high)
        below = expected_tokens(middle, draft_length) < acceptance_length
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    rate = np.clip(0.5 * (low + high), _EDGE, 1.0 - _EDGE)
    return np.asarray(np.log(rate / (1.0 - rate)))


def tokens_of(logit: Floats, draft_length: Floats) -> tuple[Floats, Floats]:
    """Return the acceptance lengths of rates given by their logits, and d log(AL) / d logit; 1 and
    0 for K = 0.
    """
    rate = np.clip(1.0 / (1.0 + np.exp(-logit)), _EDGE, 1.0 - _EDGE)
    tokens = expected_tokens(rate, draft_length)
    powers = rate**draft_length
    # d/da of (1 - a^(K+1)) / (1 - a)
    slope = (tokens - (draft_length + 1.0) * powers) / (1.0 - rate)
    return tokens, slope * rate * (1.0 - rate) / tokens


def step_law(least: int, has_acceptance: bool) -> Law:
    """Return the law of log seconds of a step with drafts against one without.

    A pass of n tokens lasts 1 + n s times as long as one of none. At concurrency c, K drafts cost K
    d passes of c tokens, and one of (1 + K) c tokens verifies them. Where no acceptance length is
    known, seconds are those of an output token, and fall by the tokens of a step.

    Parameters
    ----------
    least
        Concurrency from which loads are counted.
    has_acceptance
        Whether acceptance lengths are known.
    """

    def value(features: Records, parameters: Floats) -> Floats:
        drafts, tokens = (
            np.expm1(features["length"]),
            least * np.exp(features["load"]) * math.exp(parameters[1]),
        )
        law = np.log1p(tokens) + np.log1p(
            drafts * (math.exp(parameters[0]) + tokens / (1.0 + tokens))
        )
        if not has_acceptance:
            law -= np.log(tokens_of(np.full(len(features), parameters[2]), drafts)[0])
        return np.asarray(law)

    usual, spread = (
        np.array(values if has_acceptance else values + more)
        for values, more in zip(PASSES, ACCEPTANCE, strict=True)
    )
    return Law(value, usual, spread)


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
    measured: Truths


@dataclass(frozen=True)
class _Observed:
    """The runs of one point: mean throughput, its logarithm, how many, mean acceptance length; NaN
    where unknown.
    """

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
        If nothing was measured with speculation.
    """

    terms: ClassVar[tuple[Term, ...]] = STEP_TERMS

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
        if all(point.draft_length is None for point in timed):
            raise InvalidInput("sweep: expected a run with speculation (a draft_length), got none")
        self._bases: list[Point] = []
        self._timed, self._steps = self._fit_steps(timed)
        self._accepted, self._acceptance = self._fit_acceptance()
        self._factors: dict[tuple[str, bool, bool], float] = {}

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
                f"mean_acceptance_length is missing in {lacking} of {len(drafting)} rows that"
                " draft: it was not used"
            )
        squares, degrees = 0.0, 0
        observed = {}
        for point, several in runs.items():
            logs = np.log([m.tokens_per_second for m in several if m.tokens_per_second is not None])
            lengths = [m.acceptance_length for m in several if m.acceptance_length is not None]
            if not len(logs) and not self.has_acceptance:
                continue
            if len(logs) > 1:
                squares, degrees = (
                    squares + float(((logs - logs.mean()) ** 2).sum()),
                    degrees + len(logs) - 1,
                )
            mean = float(logs.mean()) if len(logs) else math.nan
            speed = math.exp(mean) if len(several) > 1 else several[0].tokens_per_second or math.nan
            known = float(np.mean(lengths)) if lengths and point.draft_length else math.nan
            observed[point] = _Observed(speed, mean, len(logs), known)
        self.repeats = degrees
        if degrees < _FEWEST_REPEATS:
            self.notes.append(
                f"too few points were repeated to tell how noisy runs are: {NOISE:.1%} is assumed"
            )
        self.noise = NOISE if degrees < _FEWEST_REPEATS else max(math.sqrt(squares / degrees), 1e-4)
        return observed

    def _fit_steps(self, timed: Sequence[Point]) -> tuple[list[Point], Regression]:
        timed = list(timed)
        # without drafts a step lasts about as long as without speculation: what is shorter than
        # measured lies between
        if 0 not in self.sweep.draft_lengths:
            self._bases = [point for point in timed if point.draft_length is None]
        idle = [Point(base.condition, 0) for base in self._bases]
        values = [
            math.log(point.condition.concurrency)
            + (
                math.log(self._observed[point].acceptance)
                if self.has_acceptance and point.draft_length
                else 0.0
            )
            - self._observed[point].throughput
            for point in timed
        ]
        cost = 0.0 if self.sweep.zero_is_none else -math.log1p(-IDLE_COST[1])
        values += [
            math.log(base.condition.concurrency) - self._observed[base].throughput + cost
            for base in self._bases
        ]
        runs = np.array(
            [float(self._observed[point].runs) for point in timed]
            + [(self.noise / _IDLE_SPREAD) ** 2] * len(idle)
        )
        sure = (
            {"sure": 1.0 / math.sqrt(2.0 * self.repeats)} if self.repeats >= _FEWEST_REPEATS else {}
        )
        features = self._features([*timed, *idle])
        law = step_law(self._least, self.has_acceptance)
        return timed, Regression(
            self.terms, features, np.array(values), runs, self.noise, law=law, **sure
        )

    def _fit_acceptance(self) -> tuple[list[Point], Regression | None]:
        if not self.has_acceptance:
            return [], None
        points = [
            point
            for point, seen in self._observed.items()
            if point.draft_length and seen.acceptance > 0.0
        ]
        lengths = np.array([float(point.draft_length or 0) for point in points])
        logits = logit_rate(
            np.array([self._observed[point].acceptance for point in points]), lengths
        )
        return points, Regression(
            ACCEPTANCE_TERMS, self._features(points), logits, np.ones(len(points)), NOISE
        )

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
        return np.array(rows, _FEATURES)

    # ------------------------------------------------------------------ predictions

    def predict(self, points: Iterable[Point]) -> Predictions:
        """Return the throughput of points, with bands; what was measured as it was measured."""
        points = tuple(points)
        features = self._features(points)
        logit, spread = (
            self._acceptance.predict(features)
            if self._acceptance is not None
            else np.zeros((2, len(points)))
        )
        mean, variance = self._throughput(points, *self._steps.predict(features), logit, spread)
        deviation = np.sqrt(variance) * [self._factor(point) for point in points]
        measured = np.array(
            [point in self._observed and self._observed[point].runs > 0 for point in points]
        )
        for k in np.flatnonzero(measured):
            seen = self._observed[points[k]]
            mean[k], deviation[k] = seen.throughput, self.noise / math.sqrt(seen.runs)
        reach = self._normal * deviation
        speed = np.exp(mean)
        speed[measured] = [
            self._observed[points[k]].speed for k in np.flatnonzero(measured)
        ]  # to the last digit
        return Predictions(
            points, speed, np.exp(mean - reach), np.exp(mean + reach), deviation, measured
        )

    def speedup_reach(self, found: Predictions) -> Floats:
        """Return half the width of the bands of log speed-ups against no speculation at the same
        loads.

        What both share, such as how throughput lies between two measured loads, does not widen
        them.
        """
        place = {
            condition: k
            for k, condition in enumerate(dict.fromkeys(p.condition for p in found.points))
        }
        none = self.predict(Point(condition, self.sweep.relative) for condition in place)
        at = np.array([place[point.condition] for point in found.points])
        square = found.deviation**2 + none.deviation[at] ** 2
        both = np.flatnonzero(~(found.measured | none.measured[at]))
        if len(both):
            points, base = [found.points[k] for k in both], [none.points[at[k]] for k in both]
            shared = self._steps.covariance(self._features(points), self._features(base))
            factors = [
                self._factor(point) * self._factor(other)
                for point, other in zip(points, base, strict=True)
            ]
            square[both] -= 2.0 * np.array(factors) * shared
        return np.asarray(self._normal * np.sqrt(np.maximum(square, 0.0)))

    def acceptance_length(self, point: Point) -> float | None:
        """Return the mean acceptance length that is expected of a point; None if the sweep holds
        none.
        """
        if self._acceptance is None or not point.draft_length:
            return None
        logit, _ = self._acceptance.predict(self._features([point]))
        return float(tokens_of(logit, np.array([float(point.draft_length)]))[0][0])

    def _throughput(
        self, points: Sequence[Point], step: Floats, variance: Floats, logit: Floats, spread: Floats
    ) -> tuple[Floats, Floats]:
        load = np.log([float(point.condition.concurrency) for point in points])
        if self._acceptance is None:
            return load - step, variance
        tokens, slope = tokens_of(
            logit, np.array([float(point.draft_length or 0) for point in points])
        )
        return load + np.log(tokens) - step, variance + slope**2 * spread

    def _factor(self, point: Point) -> float:
        """Return by how much the band of a point is wider than the regression's own."""
        length, load = point.draft_length, _load(point)
        new_length = length is not None and all(length != p.draft_length for p in self._timed)
        key = point.condition.workload, new_length, all(load != _load(p) for p in self._timed)
        if key not in self._factors:
            groups = list(self._misses(*key)) or [self._missed([p], [p]) for p in self._timed]
            factor = self._quantile([self._quantile(group) for group in groups]) / self._normal
            few = len(groups) < _ENOUGH  # a handful of groups may widen a band, but not narrow it
            self._factors[key] = (
                max(factor, self._reach_of(len(groups)) / self._normal) if few else factor
            )
        return self._factors[key]

    def _quantile(self, misses: Sequence[float] | Floats) -> float:
        rank = math.ceil(self.confidence * (len(misses) + 1))
        return float(np.sort(misses)[min(rank, len(misses)) - 1])

    def _reach_of(self, groups: int) -> float:
        """Return the quantile of Student's distribution: scales learned from few groups are unsure
        themselves.
        """
        from scipy.stats import t

        return float(t.ppf(0.5 + 0.5 * self.confidence, groups + 1))

    def _misses(self, workload: str, new_length: bool, new_load: bool) -> Iterator[Floats]:
        """Yield standardised residuals of what is held out as the points of a kind lack what is
        like them.

        Other workloads, each but for what is known of this one; else all points of a draft length,
        of a load, or both.
        """
        known = {_place(p) for p in self._observed if p.condition.workload == workload}
        others = [
            [p for p in self._timed if p.condition.workload == other and _place(p) not in known]
            for other in sorted(self._workloads.keys() - {workload})
        ]
        if any(others):
            yield from (self._missed(hidden, hidden) for hidden in others if hidden)
            return
        groups: dict[object, list[Point]] = defaultdict(list)
        for p in self._timed:
            if not new_length and not new_load:
                groups[p].append(p)
            elif p.draft_length is not None or not new_length:
                groups[
                    p.draft_length if new_length else None, _load(p) if new_load else None
                ].append(p)
        for group in groups.values():
            lengths = {p.draft_length for p in group if new_length}
            loads = {_load(p) for p in group if new_load}
            hidden = [
                p
                for p in self._timed
                if p in group or p.draft_length in lengths or _load(p) in loads
            ]
            if any(p.draft_length for p in self._timed if p not in hidden):
                yield self._missed(group, hidden)

    def _missed(self, points: Sequence[Point], hidden: Sequence[Point]) -> Floats:
        """Return standardised residuals of some hidden points, as all that is not hidden predicts
        them.
        """
        hidden = [*points, *(set(hidden) - set(points))]
        # what is taken for 0 drafts goes with what it is derived from
        idle = [Point(p.condition, 0) for p in hidden if p in self._bases]
        rows = {
            p: k
            for k, p in enumerate([*self._timed, *(Point(p.condition, 0) for p in self._bases)])
        }
        step, variance = (
            f[: len(points)]
            for f in self._steps.held_out(np.array([rows[p] for p in [*hidden, *idle]]))
        )
        logit, spread = np.zeros((2, len(hidden)))
        rows = {p: k for k, p in enumerate(self._accepted)}
        at = [k for k, p in enumerate(hidden) if p in rows]
        if self._acceptance is not None and at:
            logit[at], spread[at] = self._acceptance.held_out(
                np.array([rows[hidden[k]] for k in at])
            )
        mean, variance = self._throughput(
            points, step, variance, logit[: len(points)], spread[: len(points)]
        )
        truth = np.array([self._observed[point].throughput for point in points])
        return np.abs(truth - mean) / np.sqrt(variance)


def _load(point: Point) -> tuple[int, int]:
    """Return the load of a point, whatever the workload."""
    return point.condition.concurrency, point.condition.context_tokens


def _place(point: Point) -> tuple[int, int, int | None]:
    """Return where a point lies, whatever the workload."""
    return point.condition.concurrency, point.condition.context_tokens, point.draft_length
