"""Laws of scores with few digits, so that files of them sum to 1 as they are written."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from specopt.models.drafting import Scores
from specopt.models.fields import Floats

DIGITS = 6


def law(weights: Floats) -> Floats:
    """Return weights as probabilities of six digits that sum to 1."""
    probabilities = np.round(weights / weights.sum(), DIGITS)
    probabilities[np.argmax(probabilities)] += 1.0 - probabilities.sum()
    return np.asarray(np.round(probabilities, DIGITS), np.float64)


def normal_scores(signal: float, bins: int, after: float) -> Scores:
    """Return the law of a normal score: means `signal` apart at accepted tokens and first
    rejections, deviation 1.

    Parameters
    ----------
    signal
        Distance of the two means; 0: the score says nothing.
    bins
        Bins of equal probability under a normal score halfway between.
    after
        Where the mean lies behind a rejection: 0 as at an accepted token, 1 as at the first
        rejection.
    """
    middle = NormalDist(0.0, math.hypot(1.0, 0.5 * signal))
    edges = [middle.inv_cdf(one / bins) for one in range(1, bins)]

    def binned(mean: float) -> Floats:
        below = [NormalDist(mean, 1.0).cdf(edge) for edge in edges]
        return law(np.diff([0.0, *below, 1.0]))

    return Scores(
        accepted=binned(0.5 * signal),
        first_rejection=binned(-0.5 * signal),
        after=binned((0.5 - after) * signal),
    )
