"""Means with intervals over prompts. The values of one prompt depend on each other, so complete
prompts are resampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

RESAMPLES = 2000
LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A number and its 95 % interval, with NaN if unknown."""

    value: float
    low: float
    high: float


def interval(values: Any, prompts: Any, weights: Any = None, seed: int = 0) -> Interval:
    """Return the mean of values, or their weighted mean, with a bootstrap over prompts.

    Parameters
    ----------
    values, prompts
        Values and the prompt of each, shape (n,).
    weights
        Weights of the values. The mean is sum(values) / sum(weights). None means ones.
    seed
        Seed of the resampling.
    """
    values = np.asarray(values, dtype=np.float64)
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    _, place = np.unique(prompts, return_inverse=True)
    sums, sizes = np.bincount(place, weights=values), np.bincount(place, weights=weights)
    drawn = np.random.default_rng(seed).integers(len(sums), size=(RESAMPLES, len(sums)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return Interval(float(sums.sum() / sizes.sum()), float(low), float(high))
