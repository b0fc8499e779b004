"""Expected tokens per speculation round and expected rounds per response (paper 1, Eq. 7-8)."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from specopt.models.fields import Floats, Ints


def expected_tokens_per_step(acceptance_rate: float, speculation_length: int) -> float:
    """Return the mean number of output tokens per decoding step (Eq. 7).

    The mean includes the one token that the verify model adds in each step.

    Parameters
    ----------
    acceptance_rate
        Probability alpha in [0, 1] that a draft token is accepted, given that all its predecessors
        were accepted.
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
    logarithm = math.log1p(acceptance_rate - 1.0)  # 1 - a^(l+1) cancels if a is close to 1
    return -math.expm1((1 + speculation_length) * logarithm) / (1.0 - acceptance_rate)


def bisected(is_below: Callable[[float], bool], low: float = 0.0, high: float = 1.0) -> float:
    """Find by bisection the argument at which `is_below` changes from true to false.

    The condition must be monotone. The result is the upper end of the last interval. If the
    condition is the same at `low` and `high`, the result is the nearer end of the interval.

    Examples
    --------
    >>> round(bisected(lambda x: x * x < 0.25), 6)
    0.5
    """
    for _ in range(60):  # halvings
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return high


def rate_that_yields(
    tokens_per_step: float, speculation_length: int, low: float = 1e-9, high: float = 1.0 - 1e-9
) -> float:
    """Return the acceptance rate at which a step yields `tokens_per_step` tokens (Eq. 7).

    The rate is searched between `low` and `high`. If there is no such rate, return the nearer end
    of the interval.

    Examples
    --------
    >>> round(rate_that_yields(3.3616, 4), 6)
    0.8
    """
    return bisected(
        lambda rate: expected_tokens_per_step(rate, speculation_length) < tokens_per_step,
        low,
        high,
    )


def expected_tokens(acceptance_rates: Any, draft_tokens: Any) -> Floats:
    """Return the expected number of tokens per round, mu = (1 - a^(S+1)) / (1 - a) (paper 5).

    The acceptance rates a and the numbers of draft tokens S are arrays. The result is accurate even
    if a is close to 1.

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
    rates = np.asarray(acceptance_rates, np.float64)
    logarithms = np.log(
        np.maximum(rates, sys.float_info.min)
    )  # the smallest positive number replaces a rate of 0, and the result is 1, as it should be
    return np.expm1((np.asarray(draft_tokens) + 1.0) * logarithms) / (rates - 1.0)


def decoding_steps(output_tokens: float, tokens_per_step: float) -> int:
    """Return the number of decoding steps in a response (Eq. 8).

    The result is the number of output tokens divided by the tokens per step, rounded up. A quotient
    within a relative distance of 1e-12 of an integer counts as that integer. Otherwise, a rounding
    error in the division could add a step.

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
    """Return the number of decoding steps in each response: `decoding_steps` for arrays."""
    quotient = output_tokens / tokens_per_step
    nearest = np.rint(quotient)
    found = np.where(
        np.abs(quotient - nearest) <= 1e-12 * np.maximum(1.0, quotient), nearest, np.ceil(quotient)
    )
    return found.astype(np.int64)


NEVER = 1e-18
"""`round_tails` stops at the first tail probability at or below this value. A larger value shortens
the arrays that the function returns.
"""


@lru_cache(maxsize=1024)
def round_tails(output_tokens: int, acceptance_rate: float, speculation_length: int) -> Floats:
    """Return the probabilities that a response requires more than 0, 1, 2, ... rounds. Draft tokens
    are assumed to be accepted independently.
    """
    accepted = acceptance_rate ** np.arange(speculation_length + 1.0)
    gains = np.append(0.0, -np.diff(accepted, append=0.0))  # probabilities of 0, ..., l + 1 tokens
    left, tails = np.ones(1), [1.0]
    while tails[-1] > NEVER and len(tails) <= output_tokens:
        left = np.convolve(left, gains)[:output_tokens]  # by the number of tokens so far
        tails.append(float(left.sum()))
    return np.minimum(tails, 1.0)


def slowest_rounds(responses: Iterable[tuple[int, float]], speculation_length: int) -> int:
    """Return the expected number of rounds until the slowest of several responses finishes.

    The expectation is rounded up as in `decoding_steps`.

    Parameters
    ----------
    responses
        Number of output tokens and acceptance rate of each response. The responses are assumed to
        be independent.
    speculation_length
        Number l >= 0 of draft tokens.

    Examples
    --------
    >>> slowest_rounds([(9, 0.8)], 4), slowest_rounds([(9, 0.8)] * 8, 4)
    (4, 5)
    """
    tails_of_responses = [
        (round_tails(*one, speculation_length), count) for one, count in Counter(responses).items()
    ]
    done = np.ones(max(len(tails) for tails, _ in tails_of_responses))
    for tails, count in tails_of_responses:
        done[: len(tails)] *= (1.0 - tails) ** count
    return decoding_steps(float((1.0 - done).sum()), 1.0)
