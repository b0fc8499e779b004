"""Score distributions with few digits, so that their values in files sum to 1."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from specopt.models.drafting import Scores
from specopt.models.fields import Floats

DIGITS = 6


def as_probabilities(weights: Floats) -> Floats:
    """Return weights as probabilities of six digits that sum to 1."""
    probabilities = np.round(weights / weights.sum(), DIGITS)
    probabilities[np.argmax(probabilities)] += 1.0 - probabilities.sum()
    return np.asarray(np.round(probabilities, DIGITS), np.float64)


def normal_scores(signal: float, bins: int, after: float) -> Scores:
    """Return the distribution of a normal score with deviation 1 whose means at accepted tokens and
    first rejections differ by `signal`.

    Parameters
    ----------
    signal
        Distance of the two means; at 0 the score carries no information.
    bins
        Number of bins of equal probability under a normal distribution halfway between the means.
    after
        Position of the mean after a rejection: 0 for that of an accepted token, 1 for that of the
        first rejection.
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
