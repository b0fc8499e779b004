"""The fastest policy on what the predictor says: exact optimal stopping of a draft.

Token speed is a ratio of means, (E[N] + 1) / (overhead + tau E[D]). Dinkelbach's method buys it at a price: for a price
lambda per second, maximise E[N] - lambda tau E[D]; the ratio of the maximiser is the next price, and prices rise to the
optimum in a few steps.

Every drafted token is sent: it costs drafting time whether it is sent or not.
"""

from __future__ import annotations

import numpy as np

from specopt.models.drafting import DraftingSetting, ExpectedRound, Scores
from specopt.solvers.drafting.fixed_window import fixed_window
from specopt.solvers.drafting.pieces import best_ratio
from specopt.solvers.drafting.policy import Drafting, DraftingPolicy


def optimal_stopping(setting: DraftingSetting, predictor: Scores) -> Drafting:
    """Return the policy of the highest token speed among all that stop by the scores read so far.

    Never slower than the best fixed window, nor than any rule on the same scores that counts the flagged token's
    drafting time.

    Parameters
    ----------
    setting
        Costs and acceptance.
    predictor
        Distribution of the score bins; two bins for a predictor that says only yes or no.
    """
    start = fixed_window(setting, bins=predictor.bins)
    rates = np.full(setting.most_tokens, setting.acceptance_rate)
    overhead = setting.overhead_seconds
    best = best_ratio(rates, predictor, setting.seconds_per_token / overhead, start.tokens_per_second * overhead)
    speed, gap = setting.tokens_per_second(best.accepted, best.drafted), best.lost / best.price
    if not speed > start.tokens_per_second * (1.0 + 1e-13):  # the scores are worth nothing here
        return Drafting(
            policy=DraftingPolicy(
                name="optimal-stopping",
                window=start.policy.window,
                flagged=np.zeros(predictor.bins, dtype=np.bool_),
                sends_flagged=True,
                thresholds=np.full(start.policy.window, -1.0),
            ),
            expected=start.expected,
            tokens_per_second=start.tokens_per_second,
            gap=gap,
        )
    policy = DraftingPolicy(
        name="optimal-stopping",
        window=setting.most_tokens,
        flagged=np.zeros(predictor.bins, dtype=np.bool_),
        sends_flagged=True,
        thresholds=best.thresholds,
    )
    expected = ExpectedRound(accepted=best.accepted, wasted=best.drafted - best.accepted, drafted=best.drafted)
    return Drafting(policy=policy, expected=expected, tokens_per_second=speed, gap=gap)
