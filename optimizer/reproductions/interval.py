"""Means over seeds, with how sure they are."""

from __future__ import annotations

import numpy as np

from specopt.models.fields import Floats
from specopt.solvers.simulation import t_quantile


def interval(values: Floats) -> tuple[float, float]:
    """Return the mean and half the width of its 95 % interval (Student); at least two values."""
    n = len(values)
    return float(values.mean()), t_quantile(n - 1) * float(values.std(ddof=1) / np.sqrt(n))
