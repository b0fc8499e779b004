"""Optimality proofs based on the common rate c(x).

The common rate of x is the rate that yields the same utility if every client has it.

The function c is concave, and c(t x) = t c(x). The gradient s of log c at x satisfies s . x = 1,
and all rates y satisfy c(y) <= c(x) s . y. The bound is tight at the optimum and does not depend on
the unit of the rates. It never leaves the range of the utility, however steep the utility is.
"""

from __future__ import annotations

import math

import numpy as np

from specopt.models.fair_goodput.problem import FairGoodputProblem
from specopt.models.fields import Floats


def slope(rates: Floats, log_weights: Floats, fairness: float) -> Floats:
    """Return the gradient of the logarithm of the common rate at `rates`.

    The gradient is a vector of prices at which the rates have a total value of 1.
    """
    parts = log_weights + (1.0 - fairness) * np.log(rates)
    spent = np.exp(parts - parts.max())
    prices: Floats = spent / spent.sum() / rates
    return prices


def prices_at(problem: FairGoodputProblem, goodput: Floats) -> Floats:
    """Return the gradient of the logarithm of a problem's common rate at `goodput`."""
    return slope(goodput, np.log(problem.weight), problem.fairness)


def raised(problem: FairGoodputProblem, utility: float, factor: float) -> float:
    """Return the utility after all rates are multiplied by `factor`.

    `utility` is the utility of the original rates.
    """
    if problem.fairness == 1.0:
        return utility + float(problem.weight.sum()) * math.log(factor)
    return float(utility * factor ** (1.0 - problem.fairness))
