"""The forms that measured runtimes are fitted with: a line, the maximum of two lines, the additive form of batches.

All minimise the weighted sum of squared errors over coefficients at or above 0, exactly. Coefficients of the two forms
against work are rows of slope and overhead, shape (pieces, 2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.instances.runtimes.nonnegative_least_squares import nonnegative_least_squares, nonnegative_normal_equations
from specopt.models.fields import Floats, Ints

MOST_SPLITS = 2000
"""Breakpoints tried at most by a fit; tables with more distinct values are searched on evenly spaced ones."""

SPLITS_PER_RESAMPLE = 64
"""Breakpoints tried at most by the fit of a resample, if there are more: half of them evenly spaced, half ever denser
towards the one of the fit to all rows."""

POLISHED = 8
"""So many of the breakpoints that look best are fitted again, without normal equations."""


class Form(ABC):
    """A family of functions, and how to fit it."""

    name: ClassVar[str]
    least_distinct: int
    """Distinct rows of inputs that a fit needs."""

    @abstractmethod
    def fit(self, inputs: Floats, seconds: Floats, weights: Floats) -> Floats:
        """Return the coefficients that minimise the sum of (weights (prediction - seconds))^2.

        Parameters
        ----------
        inputs
            Shape (n, inputs of the form).
        seconds, weights
            Shape (n,); weights > 0.
        """

    @abstractmethod
    def resamples(self, inputs: Floats, seconds: Floats, weights: Floats, counts: Floats) -> Floats:
        """Return the coefficients of many resamples; `counts`, shape (B, n), says how often each row is in one."""

    @abstractmethod
    def predict(self, coefficients: Floats, inputs: Floats) -> Floats:
        """Return seconds, shape (n,)."""


class Linear(Form):
    """T = slope x + overhead (paper 1, Eq. 17)."""

    name = "linear"
    least_distinct = 2

    def fit(self, inputs: Floats, seconds: Floats, weights: Floats) -> Floats:
        """Return the optimal coefficients; see `Form.fit`."""
        return nonnegative_least_squares(_with_ones(inputs) * weights[:, None], seconds * weights)[0][None, :]

    def resamples(self, inputs: Floats, seconds: Floats, weights: Floats, counts: Floats) -> Floats:
        """Return the coefficients of many resamples; see `Form.resamples`."""
        return _resampled(_with_ones(inputs), seconds, weights, counts)[:, None, :]

    def predict(self, coefficients: Floats, inputs: Floats) -> Floats:
        """Return seconds; see `Form.predict`."""
        return _maximum(coefficients, inputs)


class Additive(Form):
    """T = a N_linear + b_compute N_interactions + b_read N_cached + c (paper 2, Eq. 18-19)."""

    name = "additive"
    least_distinct = 5

    def fit(self, inputs: Floats, seconds: Floats, weights: Floats) -> Floats:
        """Return the optimal coefficients; see `Form.fit`."""
        return nonnegative_least_squares(_with_ones(inputs) * weights[:, None], seconds * weights)[0]

    def resamples(self, inputs: Floats, seconds: Floats, weights: Floats, counts: Floats) -> Floats:
        """Return the coefficients of many resamples; see `Form.resamples`."""
        return _resampled(_with_ones(inputs), seconds, weights, counts)

    def predict(self, coefficients: Floats, inputs: Floats) -> Floats:
        """Return seconds; see `Form.predict`."""
        return np.asarray(_with_ones(inputs) @ coefficients)

    @staticmethod
    def is_determined(inputs: Floats) -> bool:
        """Tell whether the features and a constant can be told apart."""
        design = _with_ones(inputs)
        return bool(np.linalg.matrix_rank(design / np.maximum(np.abs(design).max(axis=0), 1e-300)) == 4)


@dataclass(frozen=True)
class Roofline(Form):
    """T = max(slope_1 x + overhead_1, slope_2 x + overhead_2), slope_1 <= slope_2.

    A maximum of two lines follows the flatter one up to some x_k and the steeper one from the next value x_k+1 on.
    Given k, these functions are the sums, with coefficients >= 0, of 1, x, and two hinges: (x_k up to there, x
    beyond) and (x_k+1 up to there, x beyond). Each k is thus a least-squares problem with four coefficients >= 0, and
    the best k is the global optimum, which alternating between assignment and fit does not promise. O(n) per k.

    Parameters
    ----------
    flat
        Whether the flatter piece is a constant: max(c, a x + e).
    """

    name: ClassVar[str] = "roofline"
    flat: bool = False

    @property
    def least_distinct(self) -> int:  # type: ignore[override]
        """One more than the coefficients need."""
        return 4 if self.flat else 5

    def fit(self, inputs: Floats, seconds: Floats, weights: Floats) -> Floats:
        """Return the optimal coefficients; see `Form.fit`."""
        x = inputs[:, 0]
        levels, where = np.unique(x, return_inverse=True)
        splits = _spread(np.arange(len(levels) - 1), MOST_SPLITS)
        scale = float(levels[-1])
        gains = self._screen(levels / scale, where, seconds, weights, np.ones((1, len(x))), splits)[0]
        candidates = splits[np.argsort(-gains, kind="stable")[:POLISHED]]
        found = [self._at(k, levels, where, x, seconds, weights) for k in candidates]
        return min(found, key=lambda one: one[1])[0]

    def resamples(self, inputs: Floats, seconds: Floats, weights: Floats, counts: Floats) -> Floats:
        """Return the coefficients of many resamples; see `Form.resamples`."""
        x = inputs[:, 0]
        levels, where = np.unique(x, return_inverse=True)
        splits = np.arange(len(levels) - 1)
        if len(splits) > SPLITS_PER_RESAMPLE:
            evenly = _spread(splits, SPLITS_PER_RESAMPLE // 2)
            around = self._split(self.fit(inputs, seconds, weights), levels)
            steps = np.geomspace(1, len(splits) - 1, SPLITS_PER_RESAMPLE // 4).round().astype(np.int64)
            near = np.concatenate([around - steps, [around], around + steps])
            splits = np.union1d(evenly, near[(near >= 0) & (near < len(splits))])
        gains = self._screen(levels / float(levels[-1]), where, seconds, weights, counts, splits)
        out = np.empty((len(counts), 2, 2))
        for row, count, k in zip(out, counts, splits[np.argmax(gains, axis=1)], strict=True):
            drawn = count > 0.0
            times = weights[drawn] * np.sqrt(count[drawn])
            row[:] = self._at(int(k), levels, where[drawn], x[drawn], seconds[drawn], times)[0]
        return out

    def predict(self, coefficients: Floats, inputs: Floats) -> Floats:
        """Return seconds; see `Form.predict`."""
        return _maximum(coefficients, inputs)

    @staticmethod
    def _split(pieces: Floats, levels: Floats) -> int:
        """Return the last level on the flatter piece."""
        flatter, steeper = (levels * slope + overhead for slope, overhead in pieces.tolist())
        return int(np.clip((flatter >= steeper).sum() - 1, 0, len(levels) - 2))

    def _at(
        self, k: int, levels: Floats, where: Ints, x: Floats, seconds: Floats, weights: Floats
    ) -> tuple[Floats, float]:
        """Return the best two lines that cross between the k-th and the next level, and the sum of squares."""
        low, high, flatter = levels[k], levels[k + 1], where <= k
        columns = [np.ones_like(x), np.where(flatter, low, x), np.where(flatter, high, x)]
        if not self.flat:
            columns.append(x)
        design = np.column_stack(columns) * weights[:, None]
        found, error = nonnegative_least_squares(design, seconds * weights)
        constant, first, second = found[:3]
        slope = 0.0 if self.flat else found[3]
        pieces = [[slope, constant + first * low + second * high], [slope + first + second, constant]]
        return np.array(pieces), error

    def _screen(
        self, levels: Floats, where: Ints, seconds: Floats, weights: Floats, counts: Floats, splits: Ints
    ) -> Floats:
        """Return how much the best fit of each split lessens the sum of squares, shape (B, splits)."""
        order = np.argsort(where, kind="stable")
        starts = np.searchsorted(where[order], np.arange(len(levels)))
        squares = (counts * weights**2)[:, order]
        mass = np.add.reduceat(squares, starts, axis=1)  # (B, levels)
        times = np.add.reduceat(squares * seconds[order], starts, axis=1)
        sums = [np.cumsum(column, axis=1) for column in (mass, mass * levels, times, mass * levels**2, times * levels)]
        low = [total[:, splits] for total in sums]
        high = [total[:, -1:] - part for total, part in zip(sums, low, strict=True)]
        u, v = levels[splits], levels[splits + 1]
        size = 3 if self.flat else 4
        gram = np.empty((*low[0].shape, size, size))
        right = np.empty((*low[0].shape, size))
        gram[..., 0, 0] = low[0] + high[0]
        right[..., 0] = low[2] + high[2]
        for one, a in ((1, u), (2, v)):
            gram[..., 0, one] = a * low[0] + high[1]
            right[..., one] = a * low[2] + high[4]
            for other, b in ((1, u), (2, v)):
                gram[..., one, other] = a * b * low[0] + high[3]
        if not self.flat:
            gram[..., 0, 3] = low[1] + high[1]
            gram[..., 1, 3] = u * low[1] + high[3]
            gram[..., 2, 3] = v * low[1] + high[3]
            gram[..., 3, 3] = low[3] + high[3]
            right[..., 3] = low[4] + high[4]
        for one in range(size):
            for other in range(one):
                gram[..., one, other] = gram[..., other, one]
        return nonnegative_normal_equations(gram, right)[1]


def _with_ones(inputs: Floats) -> Floats:
    return np.column_stack([inputs, np.ones(len(inputs))])


def _resampled(design: Floats, seconds: Floats, weights: Floats, counts: Floats) -> Floats:
    scale = np.abs(design).max(axis=0)
    scale[scale == 0.0] = 1.0
    unit = design / scale
    squares = counts * weights**2
    columns = unit.shape[1]
    gram = (squares @ (unit[:, :, None] * unit[:, None, :]).reshape(len(unit), -1)).reshape(-1, columns, columns)
    right = (squares * seconds) @ unit
    return np.asarray(nonnegative_normal_equations(gram, right)[0] / scale)


def _maximum(coefficients: Floats, inputs: Floats) -> Floats:
    return np.asarray((inputs[:, :1] * coefficients[:, 0] + coefficients[:, 1]).max(axis=1))


def _spread(values: Ints, most: int) -> Ints:
    """Return at most so many of the values, evenly spaced."""
    if len(values) <= most:
        return values
    return np.unique(values[np.linspace(0, len(values) - 1, most).round().astype(np.int64)])
