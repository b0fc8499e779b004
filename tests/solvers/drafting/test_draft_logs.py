"""The synthetic logs of drafted tokens against the truth that they state."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.draft_logs import FEATURES, acceptance_probability, draft_log, ease_of


def test_outcomes_follow_the_stated_truth() -> None:
    """Tests that the acceptance rate is as asked, and that tokens of like ease are accepted as
    often as stated.
    """
    log = draft_log(40_000, acceptance_rate=0.7, signal=0.8, seed=3)
    assert log.names == FEATURES
    judged = log.outcomes[log.judged]
    assert log.acceptance_rate == pytest.approx(0.7, abs=0.01)
    truth = acceptance_probability(ease_of(log.features), acceptance_rate=0.7, signal=0.8)[
        log.judged
    ]
    for low in np.arange(0.0, 1.0, 0.1):
        inside = (truth >= low) & (truth < low + 0.1)
        error = np.sqrt(0.25 / max(1, inside.sum()))
        if inside.sum() > 100:
            assert abs(judged[inside].mean() - truth[inside].mean()) < 4.5 * error


def test_rounds_are_whole() -> None:
    """Tests that a round is accepted tokens, at most one first rejection, and only what comes after
    it.
    """
    log = draft_log(500, window=6, seed=1)
    for row in log.outcomes.reshape(500, 6).tolist():
        text = "".join("ARX"[1 - one] for one in row)
        accepted, _, rest = text.partition("R")
        assert set(accepted) <= {"A"} and set(rest) <= {"X"}
    assert log.rounds is not None and (np.bincount(log.rounds) == 6).all()


def test_no_signal() -> None:
    """Tests that without signal every token is as likely accepted."""
    assert acceptance_probability(
        [-2.0, 0.0, 2.0], acceptance_rate=0.4, signal=0.0
    ) == pytest.approx([0.4] * 3)
