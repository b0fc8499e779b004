"""Optimality proofs by the common rate c(x), the rate that would yield the same utility if every
client had it.

c is concave and c(t x) = t c(x). The slope s of log c at x satisfies s . x = 1, and all rates y
satisfy c(y) <= c(x) s . y. This bound is tight at the optimum, has no unit, and never leaves the
range of the utility, however steep the utility is.
"""

from __future__ import annotations

import math

import numpy as np

from specopt.models.fair_goodput.problem import FairGoodputProblem
from specopt.models.fields import Floats


def slope(rates: Floats, log_weights: Floats, fairness: float) -> Floats:
    """Return the slope of the logarithm of the common rate at the given rates.

    The slope is a vector of prices at which the rates have value 1.
    """
    parts = log_weights + (1.0 - fairness) * np.log(rates)
    spent = np.exp(parts - parts.max())
    prices: Floats = spent / spent.sum() / rates
    return prices


def prices_at(problem: FairGoodputProblem, goodput: Floats) -> Floats:
    """Return the slope of the logarithm of the common rate of a problem at the given goodput."""
    return slope(goodput, np.log(problem.weight), problem.fairness)


def raised(problem: FairGoodputProblem, utility: float, factor: float) -> float:
    """Return the utility of rates scaled by a factor, given the utility of the original rates."""
    if problem.fairness == 1.0:
        return utility + float(problem.weight.sum()) * math.log(factor)
    return float(utility * factor ** (1.0 - problem.fairness))
