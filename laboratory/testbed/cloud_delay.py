"""Fit the delay of a cloud batch to a table of measurements, by isotonic piecewise-linear
regression (paper 4, g of Eq. 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specopt.instances.runtimes.forms.form import nonnegative_least_squares
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, describe
from specopt.models.pass_time import CloudDelay


@dataclass(frozen=True, kw_only=True)
class CloudDelayFit:
    """A fitted g, and the quality of the fit.

    Parameters
    ----------
    cloud_delay
        g.
    rmse_seconds, worst_seconds
        Root of the mean squared residual, and the largest one.
    r2
        Share of the variance that g explains, or 1 if there is only rounding.
    samples
        Number of rows of the table.
    """

    cloud_delay: CloudDelay
    rmse_seconds: float
    worst_seconds: float
    r2: float
    samples: int


def fit_cloud_delay(
    tokens: Sequence[float] | Floats,
    seconds: Sequence[float] | Floats,
    *,
    knots: Sequence[float] | Floats | None = None,
    most_knots: int = 8,
) -> CloudDelayFit:
    """Return the least-squares fit among all non-decreasing, non-negative g with the given knots.

    A hat-function basis turns g into a linear model. The first value and the increments between
    knots must be non-negative. The solution of this non-negative least-squares problem is a global
    optimum.

    Parameters
    ----------
    tokens, seconds
        Columns of the table: tokens of a batch, and its delay.
    knots
        Knots of g, increasing. None means quantiles of the distinct `tokens`, with at most
        `most_knots` values.
    most_knots
        Maximum number of knots, at least 2.

    Raises
    ------
    InvalidInput
        If the table is empty, ragged, negative or not finite, or there are fewer than two knots.
    """
    m, y = (np.asarray(column, dtype=np.float64) for column in (tokens, seconds))
    for name, column in (("tokens", m), ("seconds", y)):
        if column.ndim != 1 or not len(column):
            raise InvalidInput(f"{name}: expected a list of numbers, got {describe(column)}")
        if not np.isfinite(column).all() or (column < 0.0).any():
            raise InvalidInput(f"{name}: expected finite numbers >= 0")
    if len(m) != len(y):
        raise InvalidInput(f"seconds: expected {len(m)} entries, as in tokens, got {len(y)}")
    if most_knots < 2:
        raise InvalidInput(f"most_knots: expected an integer >= 2, got {describe(most_knots)}")
    places = _places(m, most_knots) if knots is None else np.asarray(knots, dtype=np.float64)
    if places.ndim != 1 or len(places) < 2 or (np.diff(places) <= 0.0).any():
        raise InvalidInput(
            "knots: expected at least two numbers in increasing order, got"
            f" {describe(places.tolist())}"
        )
    # column j: g with increment 1 at knot j, so 1 from knot j on (column 0 everywhere)
    steps = np.ones((len(m), len(places)))
    widths = np.diff(places)
    steps[:, 1:] = np.clip((m[:, None] - places[:-1]) / widths, 0.0, 1.0)
    steps[:, -1] = np.maximum(0.0, (m - places[-2]) / widths[-1])  # the last slope goes on
    increments, _ = nonnegative_least_squares(steps, y)
    delay = CloudDelay(tokens=places, seconds=np.cumsum(increments))
    residuals = steps @ increments - y
    spread = float(((y - y.mean()) ** 2).sum())
    return CloudDelayFit(
        cloud_delay=delay,
        rmse_seconds=float(np.sqrt((residuals**2).mean())),
        worst_seconds=float(np.abs(residuals).max()),
        r2=(
            1.0 - float((residuals**2).sum()) / spread
            if spread > len(y) * (1e-12 * float(y.max())) ** 2
            else 1.0
        ),
        samples=len(m),
    )


def _places(tokens: Floats, most: int) -> Floats:
    """Return knots at quantiles of the distinct tokens."""
    distinct = np.unique(tokens)
    if len(distinct) == 1:
        return np.array([distinct[0], distinct[0] + 1.0])
    return np.unique(np.quantile(distinct, np.linspace(0.0, 1.0, min(most, len(distinct)))))
