"""A moving average that outliers hardly move (paper 4, Eq. 1, made robust)."""

from __future__ import annotations

import math
from typing import NamedTuple

from specopt.models.fields import Amount, Count

_FEW = 5
"""Observations of a quantity that are believed as they are: before them nobody knows what is far
off.
"""


class Average(NamedTuple):
    """A moving average that a single outlier hardly moves, and a lasting change soon does.

    A deviation counts up to a multiple of the mean deviation, which is itself a moving average of
    what counted. A single outlier moves the mean by a bounded amount; several in a row widen the
    bound geometrically.
    """

    value: Amount = 0.0
    """0 before the first observation."""
    deviation: Amount = 0.0
    seen: Count = 0

    def after(self, value: float, smoothing: float, outlier_limit: float) -> Average:
        """Return the average once a value was observed.

        Parameters
        ----------
        value
            What was observed.
        smoothing
            alpha, the weight of the past.
        outlier_limit
            How many mean deviations a deviation counts at most; infinity: the plain moving average.
        """
        if self.seen == 0:
            return Average(value, 0.0, 1)
        step, deviation = self.limited(
            value - self.value, abs(self.value), smoothing, outlier_limit
        )
        return Average(self.value + (1.0 - smoothing) * step, deviation, self.seen + 1)

    def limited(
        self, deviation: float, size: float, smoothing: float, outlier_limit: float
    ) -> tuple[float, float]:
        """Return as much of a deviation as counts, and the mean deviation after it; `size` is that
        of the average.
        """
        if self.seen >= _FEW and math.isfinite(outlier_limit):
            # never less than a thousandth of the value: after equal values any other would be an
            # outlier
            bound = outlier_limit * max(self.deviation, 1e-3 * size)
            deviation = min(bound, max(-bound, deviation))
        few = min(self.seen, _FEW)
        past = min(smoothing, few / (few + 1.0))
        return deviation, past * self.deviation + (1.0 - past) * abs(deviation)
