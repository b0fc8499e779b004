"""A moving average that is robust against outliers (paper 4, Eq. 1)."""

from __future__ import annotations

import math
from typing import NamedTuple

from specopt.models.fields import Amount, Count

_FEW = 5
"""Number of initial observations whose deviations are not clipped.

The mean deviation is not yet known well enough at that point.
"""


class Average(NamedTuple):
    """A moving average that is robust against single outliers but follows lasting changes.

    Deviations are clipped at a multiple of the mean deviation, which is itself a moving average of
    the clipped deviations. A single outlier therefore changes the mean by a bounded amount, whereas
    several consecutive outliers raise the limit geometrically.
    """

    value: Amount = 0.0
    """Mean; 0 before the first observation."""
    deviation: Amount = 0.0
    seen: Count = 0

    def after(self, value: float, smoothing: float, outlier_limit: float) -> Average:
        """Return the average after an observation.

        Parameters
        ----------
        value
            Observed value.
        smoothing
            Weight alpha of past observations.
        outlier_limit
            Maximum deviation, as a multiple of the mean deviation. Infinity yields a plain moving
            average.
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
        """Clip a deviation, and return the clipped deviation and the updated mean deviation.

        `size` is the absolute value of the average.
        """
        if self.seen >= _FEW and math.isfinite(outlier_limit):
            # The mean deviation is replaced by at least a thousandth of the value. Otherwise, any
            # change after a series of equal values would be an outlier.
            bound = outlier_limit * max(self.deviation, 1e-3 * size)
            deviation = min(bound, max(-bound, deviation))
        few = min(self.seen, _FEW)
        past = min(smoothing, few / (few + 1.0))
        return deviation, past * self.deviation + (1.0 - past) * abs(deviation)
