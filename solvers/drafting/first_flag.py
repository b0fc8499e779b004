"""Stop at the first predicted rejection: the rule of paper 2 (Sec. 4.1, Eq. 25)."""

from __future__ import annotations

import numpy as np

from specopt.models.drafting import DraftingSetting, Scores, first_flag_round
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.solvers.drafting.policy import Drafting, DraftingPolicy


def first_flag(
    setting: DraftingSetting, predictor: Scores, *, first_accepted_bin: int = 1, sends_flagged: bool = False
) -> Drafting:
    """Return the policy that stops at the first score below a bin.

    Parameters
    ----------
    setting
        Costs and acceptance.
    predictor
        Distribution of the score bins.
    first_accepted_bin
        The first bin that counts as "accepted"; those below it are flagged.
    sends_flagged
        Whether the flagged token is sent; the paper withholds it, although it is drafted already.

    Raises
    ------
    InvalidInput
        If there is no such bin.
    """
    if not 0 <= first_accepted_bin <= predictor.bins:
        expected = f"an integer from 0 to {predictor.bins}"
        raise InvalidInput(f"first_accepted_bin: expected {expected}, got {describe(first_accepted_bin)}")
    K = setting.most_tokens
    expected_round = first_flag_round(
        setting.acceptance_rate, K, predictor.cut(first_accepted_bin), sends_flagged=sends_flagged
    )
    policy = DraftingPolicy(
        name="first-flag",
        window=K,
        flagged=np.arange(predictor.bins) < first_accepted_bin,
        sends_flagged=sends_flagged,
        thresholds=np.full(K, -1.0),
    )
    speed = setting.tokens_per_second(expected_round.accepted, expected_round.drafted)
    return Drafting(policy=policy, expected=expected_round, tokens_per_second=speed)
