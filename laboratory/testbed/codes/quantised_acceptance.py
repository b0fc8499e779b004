"""The decrease of the acceptance rate with the resolution of the lattice: alpha(l) = alpha_inf - c
TV(q, q-hat_l).

The true rate 1 - TV(p, q-hat) requires the server's distribution p. The distance between the draft
distribution and its quantised form does not. The device computes this distance before it sends
anything, and the fitted line turns it into a rate. By the triangle inequality, the slope for a
single pair of distributions is at most 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, check, describe


@dataclass(frozen=True, kw_only=True)
class QuantisedAcceptance:
    """An acceptance rate as a linear function of the distance TV(q, q-hat) caused by quantising,
    limited to [0, 1].

    Parameters
    ----------
    unquantised_rate
        alpha_inf, the rate without quantising.
    loss
        c, the loss per unit of distance.
    error
        Root mean square of the residuals of the fit, or 0 if nothing was fitted.
    """

    unquantised_rate: float
    loss: float
    error: float = 0.0

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def fit(cls, distances: Any, rates: Any) -> Self:
        """Return the least-squares line.

        Parameters
        ----------
        distances
            TV(q, q-hat), or its means, in [0, 1], with at least two different values.
        rates
            Acceptance rates at these distances, in [0, 1].

        Raises
        ------
        InvalidInput
            If values are out of range, if their numbers differ, or if all distances are the same.

        Examples
        --------
        >>> fitted = QuantisedAcceptance.fit([0.0, 0.25, 0.5], [0.75, 0.625, 0.5])
        >>> fitted.predict(0.125).round(6).tolist()
        0.6875
        """
        x, y = _within_unit("distances", distances), _within_unit("rates", rates)
        if x.shape != y.shape:
            raise InvalidInput(f"rates: expected {x.size} entries, as in distances, got {y.size}")
        centred = x - x.mean() if x.size else x
        spread = float(centred @ centred)
        if not spread:
            raise InvalidInput(
                f"distances: expected at least two different ones, got {describe(distances)}"
            )
        slope = float(centred @ (y - y.mean())) / spread
        start = float(y.mean() - slope * x.mean())
        error = float(np.sqrt(np.mean((np.clip(start + slope * x, 0.0, 1.0) - y) ** 2)))
        return cls(unquantised_rate=start, loss=-slope, error=error)

    def predict(self, distances: Any) -> Floats:
        """Return acceptance rates in [0, 1] at distances TV(q, q-hat), in the same shape."""
        line = self.unquantised_rate - self.loss * np.asarray(distances, dtype=np.float64)
        return np.clip(line, 0.0, 1.0)


def _within_unit(name: str, values: Any) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full(1, np.nan)
    if array.ndim != 1 or not ((array >= 0.0) & (array <= 1.0)).all():
        raise InvalidInput(
            f"{name}: expected a list of numbers from 0 to 1, got {describe(values)}"
        )
    return array
