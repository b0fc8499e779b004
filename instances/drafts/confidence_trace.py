"""Synthetic logs of drafts with confidences, for the threshold of paper 4's Eq. 5; the paper's own are not public."""

from __future__ import annotations

import numpy as np

from specopt.models.arguments import integer, number, random_generator
from specopt.models.device_speculation import ConfidenceTrace
from specopt.models.fields import MAX_TOKENS


def synthetic_trace(
    drafts: int = 1000, *, length: int = 12, easy_share: float = 0.6, calibration: float = 1.0, seed: int = 0
) -> ConfidenceTrace:
    """Return drafts of tokens that are easy or hard: confident and mostly right, or neither.

    Confidences of easy tokens follow Beta(8, 1), those of hard ones Beta(2, 3).

    Parameters
    ----------
    drafts, length
        How many drafts, of how many tokens each.
    easy_share
        Chance that a token is easy.
    calibration
        Chance that a token of confidence c is right is c to this power: 1 is calibrated, more is overconfident.
    seed
        The same seed gives the same trace.

    Raises
    ------
    InvalidInput
        If a value is outside its domain.
    """
    drafts, length = integer("drafts", drafts, 1, MAX_TOKENS), integer("length", length, 1, MAX_TOKENS)
    easy_share, calibration = number("easy_share", easy_share, 0, 1), number("calibration", calibration, 0)
    random = random_generator(seed)
    tokens = drafts * length
    easy = random.random(tokens) < easy_share
    confidence = np.where(easy, random.beta(8.0, 1.0, tokens), random.beta(2.0, 3.0, tokens))
    return ConfidenceTrace(
        draft=np.repeat(np.arange(drafts), length),
        confidence=confidence,
        accepted=(random.random(tokens) < confidence**calibration).astype(np.int64),
    )
