"""Acceptance of each kind of task, as for the clients of paper 5, and its drift along an answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.drafting import AFTER
from testbed.prompts import KINDS
from testbed.recorded import RecordedDrafts
from testbed.studies.resampling import Interval, interval

EARLY = 5
"""Number of rounds at the start of a run that are its early rounds."""


@dataclass(frozen=True, kw_only=True)
class Client:
    """One kind of task at one temperature.

    Parameters
    ----------
    kind, temperature
        Kind of task, and temperature.
    acceptance_rate
        Mean probability that a verified draft is accepted.
    early, late
        The same in the early rounds of runs, and in the later ones.
    """

    kind: str
    temperature: float
    acceptance_rate: Interval
    early: Interval
    late: Interval

    @property
    def drifts(self) -> bool:
        """Whether the intervals of early and late rounds do not overlap."""
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
