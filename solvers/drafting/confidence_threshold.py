"""The confidence threshold of Eq. 5 (paper 4) at which a device commits most tokens per second, on a log of drafts.

The token speed of a threshold is the sum of gained tokens over the sum of seconds, over all drafts of the log. It
changes only at confidences that occur, so comparing those is exact. O(M log M) for M tokens.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from specopt.models.device_speculation import ConfidenceTrace, RoundCost
from specopt.models.fields import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class ThresholdChoice:
    """The best threshold, and what every other one is worth.

    Parameters
    ----------
    threshold
        Drafts end with the first token below it; the smallest one among equally fast ones.
    tokens_per_second, gained_tokens, drafted_tokens
        What it gives: token speed, tokens gained and drafted per round.
    thresholds, speeds, gained, drafted
        The same for all candidates in increasing order: 0, the distinct confidences, and 1. A threshold between two of
        them is worth as much as the upper one.
    """

    threshold: float
    tokens_per_second: float
    gained_tokens: float
    drafted_tokens: float
    thresholds: Floats = field(repr=False)
    speeds: Floats = field(repr=False)
    gained: Floats = field(repr=False)
    drafted: Floats = field(repr=False)

    def at(self, threshold: float) -> float:
        """Return the token speed of any threshold in [0, 1]."""
        return float(self.speeds[np.searchsorted(self.thresholds, threshold, side="left")])


def confidence_threshold(trace: ConfidenceTrace, cost: RoundCost) -> ThresholdChoice:
    """Return the threshold with the highest token speed on a trace.

    Parameters
    ----------
    trace
        Logged drafts. A threshold of 0 drafts each of them to its end.
    cost
        Seconds of a round.
    """
    thresholds = np.unique(np.concatenate([[0.0], trace.confidence, [1.0]]))
    count = len(thresholds)
    # by candidate: change of the total tokens drafted and gained against the candidate below
    drafted, gained = np.zeros(count + 1), np.zeros(count + 1)
    starts = trace.starts.tolist()
    for begin, end in itertools.pairwise(starts):
        lowest = np.minimum.accumulate(trace.confidence[begin:end])
        # the draft ends with token t for thresholds in (lowest[t], lowest[t - 1]]; with its last one also below that
        above = np.searchsorted(thresholds, lowest, side="right")
        first = np.concatenate([above[:-1], [0]])
        beyond = np.concatenate([[count], above[:-1]])
        lengths = np.arange(1, end - begin + 1)
        gains = np.cumsum(np.cumprod(trace.accepted[begin:end])) + 1
        used = first < beyond
        for totals, values in ((drafted, lengths), (gained, gains)):
            np.add.at(totals, first[used], values[used])
            np.subtract.at(totals, beyond[used], values[used])
    rounds = len(starts) - 1
    mean_drafted, mean_gained = np.cumsum(drafted[:-1]) / rounds, np.cumsum(gained[:-1]) / rounds
    once = cost.seconds(0.0)
    per_token = cost.seconds(1.0) - once
    speeds = mean_gained / (once + per_token * mean_drafted)
    best = int(np.argmax(speeds))
    return ThresholdChoice(
        threshold=float(thresholds[best]),
        tokens_per_second=float(speeds[best]),
        gained_tokens=float(mean_gained[best]),
        drafted_tokens=float(mean_drafted[best]),
        thresholds=thresholds,
        speeds=speeds,
        gained=mean_gained,
        drafted=mean_drafted,
    )
