"""Mean acceptance lengths as one number that changes little with the draft length: the logit of a constant rate.

A constant acceptance rate a yields AL = 1 + a + ... + a^K tokens a step. The rate that explains a measured AL drifts
slowly with K, so it is what is interpolated.
"""

from __future__ import annotations

import numpy as np

from specopt.models.acceptance import expected_tokens
from specopt.models.fields import Floats

_EDGE = 1e-4  # rates closer to 0 or 1 count as this far from them


def logit_rate(acceptance_length: Floats, draft_length: Floats) -> Floats:
    """Return log(a / (1 - a)) of the constant rate a that yields the acceptance lengths; arrays of one shape."""
    low, high = np.zeros_like(acceptance_length), np.ones_like(acceptance_length)
    for _ in range(50):
        middle = 0.5 * (low + high)
        below = expected_tokens(middle, draft_length) < acceptance_length
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    rate = np.clip(0.5 * (low + high), _EDGE, 1.0 - _EDGE)
    return np.asarray(np.log(rate / (1.0 - rate)))


def tokens_of(logit: Floats, draft_length: Floats) -> tuple[Floats, Floats]:
    """Return the acceptance lengths of rates given by their logits, and d log(AL) / d logit; 1 and 0 for K = 0."""
    rate = np.clip(1.0 / (1.0 + np.exp(-logit)), _EDGE, 1.0 - _EDGE)
    tokens = expected_tokens(rate, draft_length)
    powers = rate**draft_length
    # d/da of (1 - a^(K+1)) / (1 - a)
    slope = (tokens - (draft_length + 1.0) * powers) / (1.0 - rate)
    return tokens, slope * rate * (1.0 - rate) / tokens
