"""How many drafts of a round are accepted, against the geometric law of independent acceptance
(paper 1, Eq. 7).

The law's rate is the share of accepted drafts among those looked at. A text that is easy now is
easy for some tokens: acceptance then rises along a round, and rounds differ more in length than the
law says.
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
    """Rounds of one temperature.

    Parameters
    ----------
    temperature, rounds
        Which, and how many that no answer's end cut short.
    acceptance_rate
        Accepted drafts among those looked at.
    by_position
        The same at each position of a round.
    tokens, geometric_tokens
        Mean tokens of a round by draft length 1, 2, ..., measured and by the law.
    variance_ratio
        Variance of accepted lengths over that of the law, cut at the recorded draft length.
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
        """The law's tokens over the measured ones, less 1, by draft length."""
        return tuple(
            said / found - 1.0
            for said, found in zip(self.geometric_tokens, self.tokens, strict=True)
        )

    def best_length(self, costs: Costs, *, geometric: bool) -> int:
        """Return the draft length of the most tokens per second, 0 for none.

        Parameters
        ----------
        costs
            What drafts and rounds take.
        geometric
            Whether tokens are those of the law.
        """
        return int(np.argmax(_speeds(self.geometric_tokens if geometric else self.tokens, costs)))

    def lost_by_the_law(self, costs: Costs) -> float:
        """Return the share of speed that is lost by the length that the law finds best."""
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
