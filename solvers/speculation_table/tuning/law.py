"""The throughput law, a regression model for the log throughput of a request.

The log throughput of a request is the value without speculation at the same place and load, plus
log(1 + a + ... + a^K), minus a cost. Here, each of K drafts is accepted at the constant rate a, and
the cost of the drafts grows with the load. A place is a workload with a context. Each place has a
separate logit of the acceptance rate, which a prior keeps near a logit common to all places.
Measured acceptance lengths are observations of this logit. All parameters are fitted by least
squares with these priors. The residuals of the measurements are then added, so the predictions
interpolate the measurements. Costs and residuals are piecewise linear in log(1 + K) and in the log
of the load.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from specopt.models.acceptance import expected_tokens
from specopt.models.fields import Floats
from specopt.models.sweep import Point

IDLE = 0.07
"""Typical loss of log throughput with 0 drafts if speculation is enabled.

This value is assumed if draft length 0 was not measured.
"""

_EDGE = 1e-4  # minimum distance of acceptance rates from 0 and 1
_PASS = 0.1  # prior cost of a draft, in passes of the verify model
_LOGIT = 1.0  # prior logit of the acceptance rate
_ROUGH = 0.03  # standard deviation of the log throughput around the law
_STEPS = 12  # maximum number of iterations of the fit
_FAR = 3.0  # standard deviation of a weak prior
_LEVEL, _LEVELS = 0.1, 1.0  # prior deviation of a place's level: one context, several
_COST, _IDLE = 1.0, 0.06  # prior deviation of the cost of a draft length, and of 0 drafts
_GROWTH = 0.2  # prior deviation of the additional cost per log(1 + K) at a load
_COMMON, _OWN = 1.0, 0.7  # prior deviation of the common logit, and of a place around it
# Deviation of a logit from acceptance lengths, with and without throughput.
_SEEN, _ALONE = 1.5, 0.3

Place = tuple[str, int]


def place_of(point: Point) -> Place:
    """Return the workload and the context of a point."""
    return point.condition.workload, point.condition.context_tokens


def logit_rate(acceptance_length: Floats, draft_length: Floats) -> Floats:
    """Return the logit of the constant acceptance rate that yields each acceptance length.

    The logit of a rate a is log(a / (1 - a)). Both arrays must have the same shape.
    """
    low, high = np.zeros_like(acceptance_length), np.ones_like(acceptance_length)
    for _ in range(50):
        middle = 0.5 * (low + high)
        below = expected_tokens(middle, draft_length) < acceptance_length
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    rate = np.clip(0.5 * (low + high), _EDGE, 1.0 - _EDGE)
    return np.asarray(np.log(rate / (1.0 - rate)))


def tokens_of(logit: Floats, draft_length: Floats) -> tuple[Floats, Floats]:
    """Return the acceptance lengths that follow from logits of acceptance rates, and their slopes.

    The slope of an acceptance length AL is d log(AL) / d logit. For K = 0 drafts, the acceptance
    length is 1 and the slope is 0.
    """
    rate = np.clip(1.0 / (1.0 + np.exp(-logit)), _EDGE, 1.0 - _EDGE)
    tokens = expected_tokens(rate, draft_length)
    powers = rate**draft_length
    # d/da of (1 - a^(K+1)) / (1 - a)
    slope = (tokens - (draft_length + 1.0) * powers) / (1.0 - rate)
    return tokens, slope * rate * (1.0 - rate) / tokens


class Law:
    """A throughput law fitted to measurements.

    Parameters
    ----------
    speeds
        Logarithms of the per-request throughput at the measured points. At least one point is
        required.
    lengths
        Acceptance lengths at the measured points.
    """

    def __init__(self, speeds: Mapping[Point, float], lengths: Mapping[Point, float]) -> None:
        self.places = sorted({place_of(point) for point in [*speeds, *lengths]})
        self._loads = np.log(sorted({point.condition.concurrency for point in speeds}))
        drafts = np.array(sorted({0, *(point.draft_length or 0 for point in speeds)}), float)
        self._drafts = np.log1p(drafts)
        places, loads = len(self.places), len(self._loads)
        level = _LEVELS if len({context for _, context in self.places}) > 1 else _LEVEL
        y = np.array(list(speeds.values()))
        sizes = [1, places, loads, len(drafts), loads, 1, places]
        spread = np.repeat([_FAR, level, _FAR, _COST, _GROWTH, _COMMON, _OWN], sizes)
        spread[1 + places + loads] = _IDLE
        mean = np.zeros(len(spread))
        mean[[0, -1 - places]] = y.mean(), _LOGIT
        drafted = np.array([float(point.draft_length or 0) for point in lengths])
        observed = logit_rate(np.array(list(lengths.values())), drafted)
        logits: dict[Place, list[float]] = defaultdict(list)
        for point, logit in zip(lengths, observed, strict=True):
            logits[place_of(point)].append(logit)
        seen = np.array([np.mean(own) for own in logits.values()])
        rows = np.zeros((len(logits), len(mean)))
        for row, place in zip(rows, logits, strict=True):
            row[[-1 - places, self.places.index(place) - places]] = 1.0
        timed = {place_of(point) for point in speeds if point.draft_length}
        doubt = np.array([_SEEN if place in timed else _ALONE for place in logits])
        self._found = mean
        for _ in range(_STEPS):
            slopes, value = self._expected(list(speeds))
            weighted = np.vstack([slopes / _ROUGH, rows / doubt[:, None]])
            missed = np.append((y - value) / _ROUGH, (seen - rows @ self._found) / doubt)
            change = np.linalg.solve(
                weighted.T @ weighted + np.diag(spread**-2.0),
                weighted.T @ missed + (mean - self._found) / spread**2,
            )
            change[-1 - places :] = np.clip(change[-1 - places :], -1.0, 1.0)
            self._found = self._found + change
            if np.abs(change).max() < _EDGE:
                break
        self._left: dict[Place, dict[float, dict[int | None, float]]] = defaultdict(dict)
        for point, left in zip(speeds, y - self._expected(list(speeds))[1], strict=True):
            known = self._left[place_of(point)]
            known.setdefault(math.log(point.condition.concurrency), {})[point.draft_length] = left

    def at(self, points: Sequence[Point]) -> Floats:
        """Return the predicted log throughput per request at points with known places."""
        found = self._expected(points)[1]
        for k, point in enumerate(points):
            known = self._at_loads(place_of(point), point.draft_length)
            if known:
                load = math.log(point.condition.concurrency)
                found[k] += np.interp(load, list(known), list(known.values()))
        return found

    def tokens(self, points: Sequence[Point]) -> Floats:
        """Return the expected acceptance lengths at points with known places."""
        drafts = np.array([float(point.draft_length or 0) for point in points])
        return tokens_of(self._logits(points), drafts)[0]

    def _own(self, points: Sequence[Point]) -> Floats:
        """Return a one-hot row for each point, with 1 in the column of its place."""
        of = {place: k for k, place in enumerate(self.places)}
        return np.eye(len(of))[[of[place_of(point)] for point in points]]

    def _logits(self, points: Sequence[Point]) -> Floats:
        own = self._found[-len(self.places) :]
        return np.asarray(self._found[-1 - len(own)] + self._own(points) @ own)

    def _expected(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return a tuple (derivatives, values) of the law at `points`.

        The derivatives are with respect to the parameters of the law. Draft lengths above the
        longest measured length are replaced by the longest measured length.
        """
        own, longest = self._own(points), float(np.expm1(self._drafts[-1]))
        drafts = np.array([min(point.draft_length or 0, longest) for point in points])
        speculates = np.array([[point.draft_length is not None] for point in points], float)
        loads = _shares(np.log([point.condition.concurrency for point in points]), self._loads)
        costs = -speculates * _shares(np.log1p(drafts), self._drafts)
        tokens, slope = tokens_of(self._logits(points), drafts)
        linear = np.hstack(
            [np.ones((len(points), 1)), own, loads, costs, -np.log1p(drafts)[:, None] * loads]
        )
        priced = np.log1p(_PASS * np.expm1(self._drafts))
        usual = IDLE + np.interp(np.log1p(drafts), self._drafts, priced)
        value = linear @ self._found[: linear.shape[1]] + np.log(tokens) - speculates[:, 0] * usual
        return np.hstack([linear, slope[:, None], slope[:, None] * own]), value

    def _at_loads(self, place: Place, draft_length: int | None) -> dict[float, float]:
        """Return the residuals of a place and draft length, as a mapping from the log load."""
        found = {}
        for load, row in sorted(self._left[place].items()):
            if draft_length is not None:
                # If 0 drafts were not measured, the run without speculation is used instead.
                curve = {0: row[None], **row} if None in row else row
                at = sorted(k for k in curve if k is not None)
                knots = [math.log1p(k) for k in at]
                left = np.interp(math.log1p(draft_length), knots, [curve[k] for k in at])
                found[load] = float(left)
            elif None in row:
                found[load] = row[None]
        return found


def _shares(at: Floats, knots: Floats) -> Floats:
    """Return the interpolation weights of the breakpoints `knots` for each value in `at`.

    The interpolation is linear, and is constant beyond the outermost breakpoints.
    """
    return np.array([np.interp(at, knots, knot) for knot in np.eye(len(knots))]).T
