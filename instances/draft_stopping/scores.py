"""Score distributions that are rounded to a few digits, so that the values in files sum to 1."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from specopt.models.drafting import Scores
from specopt.models.fields import Floats

DIGITS = 6


def as_probabilities(weights: Floats) -> Floats:
    """Convert weights to probabilities that have six digits and sum to 1."""
    probabilities = np.round(weights / weights.sum(), DIGITS)
    probabilities[np.argmax(probabilities)] += 1.0 - probabilities.sum()
    return np.asarray(np.round(probabilities, DIGITS), np.float64)


def normal_scores(signal: float, bins: int, after: float) -> Scores:
    """Return the binned distributions of a normally distributed score with standard deviation 1.

    Parameters
    ----------
    signal
        Distance between the means at accepted tokens and at first rejections. At 0, the score
        carries no information.
    bins
        Number of bins, which have equal probability under a wider normal distribution that is
        centred halfway between the two means.
    after
        Mean after a rejection, on a scale from 0 (mean at accepted tokens) to 1 (mean at first
        rejections).
    """
    middle = NormalDist(0.0, math.hypot(1.0, 0.5 * signal))
    edges = [middle.inv_cdf(one / bins) for one in range(1, bins)]

    def binned(mean: float) -> Floats:
        below = [NormalDist(mean, 1.0).cdf(edge) for edge in edges]
        return as_probabilities(np.diff([0.0, *below, 1.0]))

    return Scores(
        accepted=binned(0.5 * signal),
        first_rejection=binned(-0.5 * signal),
        after=binned((0.5 - after) * signal),
    )
