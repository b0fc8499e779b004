"""Acceptance of each kind of task, as paper 5's clients have it, and how it drifts while an answer
is written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.drafting import AFTER
from testbed.prompts import KINDS
from testbed.recorded import RecordedDrafts
from testbed.studies.resampling import Interval, interval

EARLY = 5
"""Rounds of a run that count as its beginning."""


@dataclass(frozen=True, kw_only=True)
class Client:
    """One kind of task at one temperature.

    Parameters
    ----------
    kind, temperature
        Which.
    acceptance_rate
        Mean probability that a draft which was looked at is accepted.
    early, late
        The same in the first rounds of runs, and in those behind.
    """

    kind: str
    temperature: float
    acceptance_rate: Interval
    early: Interval
    late: Interval

    @property
    def drifts(self) -> bool:
        """Whether the intervals of beginning and end lie apart."""
        return self.early.high < self.late.low or self.late.high < self.early.low


def clients(log: RecordedDrafts) -> list[Client]:
    """Return every kind of task at each temperature."""
    log = log.select(log.outcome != AFTER)
    found = []
    for temperature in np.unique(log.temperature).tolist():
        for kind in KINDS:
            mine = (log.kind == kind) & (log.temperature == temperature)
            early, late = (
                interval(log.acceptance_rate[mine & part], log.prompt[mine & part])
                for part in (log.round < EARLY, log.round >= EARLY)
            )
            rate = interval(log.acceptance_rate[mine], log.prompt[mine])
            found.append(
                Client(
                    kind=kind, temperature=temperature, acceptance_rate=rate, early=early, late=late
                )
            )
    return found
