"""Means over seeds, with how sure they are."""

from __future__ import annotations

import numpy as np

from specopt.models.fields import Floats


def interval(values: Floats) -> tuple[float, float]:
    """Return the mean and half the width of its 95 % interval (Student); at least two values."""
    from scipy.stats import t

    n = len(values)
    return float(values.mean()), float(t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
