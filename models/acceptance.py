"""What a round of speculation yields, and how many rounds a response takes (paper 1, Eq. 7-8)."""

from __future__ import annotations

import math


def expected_tokens_per_step(acceptance_rate: float, speculation_length: int) -> float:
    """Return the mean number of output tokens of one decoding step, the server's own included (Eq. 7).

    Parameters
    ----------
    acceptance_rate
        Probability alpha in [0, 1) that a draft token is accepted, given that all before it were.
    speculation_length
        Number l >= 0 of draft tokens.

    Examples
    --------
    >>> round(expected_tokens_per_step(0.8, 4), 6)
    3.3616
    """
    return (1.0 - acceptance_rate ** (1 + speculation_length)) / (1.0 - acceptance_rate)


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
