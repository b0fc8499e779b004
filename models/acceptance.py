"""What a round of speculation yields, and how many rounds a response takes (paper 1, Eq. 7-8)."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from specopt.models.fields import Floats, Ints


def expected_tokens_per_step(acceptance_rate: float, speculation_length: int) -> float:
    """Return the mean number of output tokens of one decoding step, the server's own included (Eq. 7).

    Parameters
    ----------
    acceptance_rate
        Probability alpha in [0, 1] that a draft token is accepted, given that all before it were.
    speculation_length
        Number l >= 0 of draft tokens.

    Examples
    --------
    >>> round(expected_tokens_per_step(0.8, 4), 6)
    3.3616
    """
    if acceptance_rate == 1.0:
        return 1.0 + speculation_length
    if acceptance_rate < 0.5:
        return (1.0 - acceptance_rate ** (1 + speculation_length)) / (1.0 - acceptance_rate)
    logarithm = math.log1p(acceptance_rate - 1.0)  # 1 - a^(l+1) cancels where a is close to 1
    return -math.expm1((1 + speculation_length) * logarithm) / (1.0 - acceptance_rate)


def rate_that_yields(
    tokens_per_step: float, speculation_length: int, low: float = 1e-9, high: float = 1.0 - 1e-9
) -> float:
    """Return the acceptance rate in an interval at which a step yields this many tokens (Eq. 7), else its nearer end.

    Examples
    --------
    >>> round(rate_that_yields(3.3616, 4), 6)
    0.8
    """
    for _ in range(60):
        middle = 0.5 * (low + high)
        if expected_tokens_per_step(middle, speculation_length) < tokens_per_step:
            low = middle
        else:
            high = middle
    return high


def expected_tokens(acceptance_rates: Any, draft_tokens: Any) -> Floats:
    """Return mu = (1 - a^(S+1)) / (1 - a) for arrays of acceptance rates a and draft tokens S (paper 5).

    Acceptance rates near 1 lose no digits.

    Parameters
    ----------
    acceptance_rates
        Probabilities in [0, 1).
    draft_tokens
        Numbers of draft tokens >= 0.

    Examples
    --------
    >>> expected_tokens([0.0, 0.5, 0.75], [3, 0, 2]).tolist()
    [1.0, 1.0, 2.3125]
    """
    rates = np.asarray(acceptance_rates, dtype=np.float64)
    logarithms = np.log(np.maximum(rates, sys.float_info.min))  # of a rate of 0 it gives the 1 that it should
    return -np.expm1((np.asarray(draft_tokens) + 1.0) * logarithms) / (1.0 - rates)


def decoding_steps(output_tokens: int, tokens_per_step: float) -> int:
    """Return the decoding steps that a response takes: the quotient rounded up (Eq. 8).

    A quotient within 1e-12 (relative) of an integer counts as that integer, so that the rounding of a
    division does not add a step.

    Examples
    --------
    >>> decoding_steps(9, 1.8), decoding_steps(10, 1.8)
    (5, 6)
    """
    quotient = output_tokens / tokens_per_step
    nearest = round(quotient)
    if abs(quotient - nearest) <= 1e-12 * max(1.0, quotient):
        return nearest
    return math.ceil(quotient)


def all_decoding_steps(output_tokens: Ints | Floats, tokens_per_step: Floats | float) -> Ints:
    """Return the decoding steps of many responses, of each those of `decoding_steps`."""
    quotient = output_tokens / tokens_per_step
    nearest = np.rint(quotient)
    found = np.where(np.abs(quotient - nearest) <= 1e-12 * np.maximum(1.0, quotient), nearest, np.ceil(quotient))
    return found.astype(np.int64)
