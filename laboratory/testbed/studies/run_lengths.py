"""The number of accepted drafts of a round, compared with the geometric distribution of independent
acceptance (paper 1, Eq. 7).

The rate of this distribution is the share of accepted drafts among the verified ones. A text that
is easy at some position remains easy for several tokens. Acceptance then increases along a round,
and the lengths of rounds vary more than the distribution predicts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.acceptance import expected_tokens_per_step
from specopt.models.drafting import ACCEPTED, AFTER
from testbed.recorded import RecordedDrafts
from testbed.studies.costs import Costs
from testbed.studies.resampling import Interval, interval


@dataclass(frozen=True, kw_only=True)
class RunLengths:
    """The rounds of one temperature.

    Parameters
    ----------
    temperature, rounds
        Temperature, and number of rounds that the end of an answer did not cut short.
    acceptance_rate
        Share of accepted drafts among the verified ones.
    by_position
        The same at each position of a round.
    tokens, geometric_tokens
        Mean tokens of a round by draft length 1, 2, ..., as measured and as predicted.
    variance_ratio
        Variance of accepted lengths divided by that of the geometric distribution, truncated at the
        recorded draft length.
    """

    temperature: float
    rounds: int
    acceptance_rate: Interval
    by_position: tuple[float, ...]
    tokens: tuple[float, ...]
    geometric_tokens: tuple[float, ...]
    variance_ratio: float

    @property
    def errors(self) -> tuple[float, ...]:
        """Predicted divided by measured tokens, minus 1, by draft length."""
        return tuple(
            said / found - 1.0
            for said, found in zip(self.geometric_tokens, self.tokens, strict=True)
        )

    def best_length(self, costs: Costs, *, geometric: bool) -> int:
        """Return the draft length with the most tokens per second, or 0 for none.

        Parameters
        ----------
        costs
            Times of drafts and rounds.
        geometric
            Whether tokens are those of the geometric distribution.
        """
        return int(np.argmax(_speeds(self.geometric_tokens if geometric else self.tokens, costs)))

    def lost_by_the_law(self, costs: Costs) -> float:
        """Return the share of speed lost with the draft length that is best for the geometric
        distribution.
        """
        speeds = _speeds(self.tokens, costs)
        return float(1.0 - speeds[self.best_length(costs, geometric=True)] / max(speeds))


def run_lengths(log: RecordedDrafts) -> list[RunLengths]:
    """Return the run lengths of each temperature."""
    return [_of(log.select(log.temperature == each)) for each in np.unique(log.temperature)]


def _of(log: RecordedDrafts) -> RunLengths:
    numbers, most = log.round_numbers, int(log.position.max()) + 1
    whole = np.bincount(numbers) == most
    lengths = np.bincount(numbers, weights=log.outcome == ACCEPTED)[whole]
    judged = log.outcome != AFTER
    accepted = log.outcome[judged] == ACCEPTED
    rate = float(accepted.mean())
    law = rate ** np.arange(most + 1) * np.append(np.full(most, 1.0 - rate), 1.0)
    spread = float(law @ np.arange(most + 1) ** 2 - (law @ np.arange(most + 1)) ** 2)
    return RunLengths(
        temperature=float(log.temperature[0]),
        rounds=len(lengths),
        acceptance_rate=interval(accepted, log.prompt[judged]),
        by_position=tuple(
            float(accepted[log.position[judged] == place].mean()) for place in range(most)
        ),
        tokens=tuple(
            float(np.minimum(lengths, length).mean()) + 1.0 for length in range(1, most + 1)
        ),
        geometric_tokens=tuple(
            expected_tokens_per_step(rate, length) for length in range(1, most + 1)
        ),
        variance_ratio=float(lengths.var()) / spread,
    )


def _speeds(tokens: tuple[float, ...], costs: Costs) -> list[float]:
    return [made / costs.of(length) for length, made in enumerate((1.0, *tokens))]
