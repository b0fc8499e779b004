"""The best fixed window: the same number of tokens every round, whatever the predictor says."""

from __future__ import annotations

import numpy as np

from specopt.models.drafting import DraftingSetting, fixed_round
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.solvers.drafting.policy import Drafting, DraftingPolicy


def fixed_window(setting: DraftingSetting, window: int | None = None, *, bins: int = 2) -> Drafting:
    """Return the policy of a fixed window, the fastest one if none is given.

    Parameters
    ----------
    setting
        Costs and acceptance.
    window
        Tokens per round from 0 to the setting's most; None for the window of the highest token speed (the smallest of
        equals). A window of 0 leaves every token to the server.
    bins
        Score bins of the predictor that is ignored.

    Raises
    ------
    InvalidInput
        If the window is out of range.
    """
    if window is None:
        speeds = [_speed(setting, one) for one in range(setting.most_tokens + 1)]
        window = int(np.argmax(speeds))
    if not 0 <= window <= setting.most_tokens:
        raise InvalidInput(f"window: expected an integer from 0 to {setting.most_tokens}, got {describe(window)}")
    policy = DraftingPolicy(
        name="fixed-window",
        window=window,
        flagged=np.zeros(bins, dtype=np.bool_),
        sends_flagged=True,
        thresholds=np.full(window, -1.0),
    )
    expected = fixed_round(setting.acceptance_rate, window)
    return Drafting(policy=policy, expected=expected, tokens_per_second=_speed(setting, window))


def _speed(setting: DraftingSetting, window: int) -> float:
    return setting.tokens_per_second(fixed_round(setting.acceptance_rate, window).accepted, window)
