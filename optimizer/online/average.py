"""A moving average that is robust against outliers (paper 4, Eq. 1)."""

from __future__ import annotations

import math
from typing import NamedTuple

from specopt.models.fields import Amount, Count

_FEW = 5
"""Number of first observations that are used unchanged, because the deviation is not known yet."""


class Average(NamedTuple):
    """A moving average that a single outlier changes little, and that follows a lasting change.

    A deviation is limited to a multiple of the mean deviation, which is a moving average of the
    limited deviations. A single outlier therefore changes the mean by a bounded amount; several
    consecutive ones raise the limit geometrically.
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
            Weight alpha of the past.
        outlier_limit
            Maximum deviation, as a multiple of the mean deviation; infinity gives the plain moving
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
        """Return the limited deviation and the next mean deviation; `size` is that of the
        average.
        """
        if self.seen >= _FEW and math.isfinite(outlier_limit):
            # the limit is at least a thousandth of the value, because otherwise any change after
            # equal values would be an outlier
            bound = outlier_limit * max(self.deviation, 1e-3 * size)
            deviation = min(bound, max(-bound, deviation))
        few = min(self.seen, _FEW)
        past = min(smoothing, few / (few + 1.0))
        return deviation, past * self.deviation + (1.0 - past) * abs(deviation)
