"""What every drafting policy is in the end: a window, bins that end the draft, and thresholds on the belief."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specopt.models.drafting import DraftingSetting, ExpectedRound, Scores
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, describe


@dataclass(frozen=True, kw_only=True, eq=False)
class DraftingPolicy:
    """When to draft on: fewer than `window` tokens, no flagged score read, belief above the position's threshold.

    The belief is the probability, given all scores read so far, that every token so far is accepted.

    Parameters
    ----------
    name
        What the policy is called.
    window
        Longest draft.
    flagged
        For each score bin, whether reading it ends the draft.
    sends_flagged
        Whether the flagged token is sent.
    thresholds
        Token k + 1 is drafted only if the belief exceeds entry k; -1 where any belief will do.
    """

    name: str
    window: int
    flagged: NDArray[np.bool_]
    sends_flagged: bool
    thresholds: Floats

    def __post_init__(self) -> None:
        for array in (self.flagged, self.thresholds):
            array.flags.writeable = False


@dataclass(frozen=True, kw_only=True)
class Drafting:
    """A policy in a setting: its expected round and token speed.

    Parameters
    ----------
    policy
        The policy.
    expected
        Means of one round.
    tokens_per_second
        Long-run token speed, one server token per round included.
    gap
        Relative speed by which a policy of the same kind could at most be faster, rounding aside.
    """

    policy: DraftingPolicy
    expected: ExpectedRound
    tokens_per_second: float
    gap: float = 0.0


class DraftingController:
    """A policy on a device: told the score of every drafted token, it says whether to draft another.

    Parameters
    ----------
    policy, setting, predictor
        The policy, and what its belief is computed from.

    Examples
    --------
    >>> from specopt.models.drafting import BinaryPredictor
    >>> from specopt.solvers.drafting.first_flag import first_flag
    >>> setting = DraftingSetting(acceptance_rate=0.8, most_tokens=8, seconds_per_token=0.02, overhead_seconds=0.1)
    >>> predictor = BinaryPredictor(false_accept=0.4, false_reject=0.2).scores
    >>> controller = DraftingController(first_flag(setting, predictor).policy, setting, predictor)
    >>> [controller.observe(bin) for bin in (1, 1, 0)]
    [True, True, False]
    """

    def __init__(self, policy: DraftingPolicy, setting: DraftingSetting, predictor: Scores) -> None:
        if len(policy.flagged) != predictor.bins:
            raise InvalidInput(
                f"predictor: expected {len(policy.flagged)} bins, as in the policy, got {predictor.bins}"
            )
        self.policy = policy
        self._alpha = setting.acceptance_rate
        self._predictor = predictor
        self.start()

    def start(self) -> bool:
        """Begin a round; return whether to draft a first token."""
        self.drafted, self.belief, self.stopped = 0, 1.0, False
        return self._goes_on()

    def observe(self, score_bin: int) -> bool:
        """Take the score bin of the token just drafted; return whether to draft another."""
        if not 0 <= score_bin < self._predictor.bins:
            expected = f"a bin from 0 to {self._predictor.bins - 1}"
            raise InvalidInput(f"score_bin: expected {expected}, got {describe(score_bin)}")
        self.drafted += 1
        self.belief = next_belief(self.belief, self._alpha, self._predictor, score_bin)
        self.stopped = self.stopped or bool(self.policy.flagged[score_bin])
        return self._goes_on()

    def _goes_on(self) -> bool:
        k = self.drafted
        return not self.stopped and k < self.policy.window and self.belief > float(self.policy.thresholds[k])


def next_belief(belief: float, acceptance_rate: float, predictor: Scores, score_bin: int) -> float:
    """Return the probability that all tokens are accepted, after one more token with this score."""
    good = belief * acceptance_rate * float(predictor.accepted[score_bin])
    bad = belief * (1.0 - acceptance_rate) * float(predictor.first_rejection[score_bin])
    bad += (1.0 - belief) * float(predictor.after[score_bin])
    return good / (good + bad) if good > 0.0 else 0.0
