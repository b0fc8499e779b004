"""A moving average that outliers hardly move (paper 4, Eq. 1, made robust)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

_FEW = 5
"""Observations of a quantity that are believed as they are: before them nobody knows what is far off."""


class Average:
    """A moving average that a single outlier hardly moves, and a lasting change soon does.

    A deviation counts up to a multiple of the mean deviation, itself a moving average of what counted: a single outlier
    moves the mean by a bounded amount, several in a row widen the bound geometrically.

    Parameters
    ----------
    smoothing
        alpha, the weight of the past.
    outlier_limit
        How many mean deviations a deviation counts at most; infinity: the plain moving average.
    """

    def __init__(self, smoothing: float, outlier_limit: float) -> None:
        self.smoothing = smoothing
        self.outlier_limit = outlier_limit
        self.value = math.nan
        self.deviation = 0.0
        self.count = 0

    def add(self, value: float) -> None:
        """Take in a value."""
        if self.count == 0:
            self.value = value
        else:
            self.value += (1.0 - self.smoothing) * self.limited(value - self.value, abs(self.value))
        self.count += 1

    def limited(self, deviation: float, size: float) -> float:
        """Return as much of a deviation as counts, and learn from it; `size` is that of the average."""
        if self.count >= _FEW and math.isfinite(self.outlier_limit):
            # never less than a thousandth of the value: after equal values any other would be an outlier
            bound = self.outlier_limit * max(self.deviation, 1e-3 * size)
            deviation = min(bound, max(-bound, deviation))
        seen = min(self.count, _FEW)
        past = min(self.smoothing, seen / (seen + 1.0))
        self.deviation = past * self.deviation + (1.0 - past) * abs(deviation)
        return deviation

    def state(self) -> list[float | int | None]:
        """Return everything but the options as JSON-like data."""
        return [None if math.isnan(self.value) else self.value, self.deviation, self.count]

    def restore(self, state: Sequence[Any]) -> Self:
        """Take over a state."""
        value, deviation, count = state
        self.value = math.nan if value is None else float(value)
        self.deviation, self.count = float(deviation), int(count)
        return self
