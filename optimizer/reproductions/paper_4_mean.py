"""Runs that differ in their seed only, read as one: the mean of every quantity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from specopt.models.fields import Floats
from specopt.models.prompt_workload import Scheme
from specopt.solvers.prompt_chunking.simulate import ChunkingRun


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanRun:
    """What a scheme reaches on average over some runs.

    Parameters
    ----------
    runs
        At least one, of one scheme and workload.
    """

    runs: tuple[ChunkingRun, ...]

    @property
    def scheme(self) -> Scheme:
        """The scheme of all runs."""
        return self.runs[0].scheme

    @property
    def mean_ttft_seconds(self) -> float:
        """Time to the first token."""
        return self._mean([run.mean_ttft_seconds for run in self.runs])

    @property
    def mean_tbt_seconds(self) -> float:
        """Time between tokens."""
        return self._mean([run.mean_tbt_seconds for run in self.runs])

    @property
    def stage_seconds(self) -> float:
        """Computation per GPU and batch."""
        return self._mean([run.stage_seconds for run in self.runs])

    @property
    def stage_seconds_std(self) -> float:
        """Its standard deviation within a run."""
        return self._mean([run.stage_seconds_std for run in self.runs])

    def compliance(self, phase: Literal["prefill", "decode"], limit_seconds: float | Floats) -> Floats:
        """Return the share of requests within a limit; see `ChunkingRun.compliance`."""
        return np.mean([run.compliance(phase, limit_seconds) for run in self.runs], axis=0)  # type: ignore[no-any-return]

    def sla_seconds(self, phase: Literal["prefill", "decode"], share: float) -> float:
        """Return the limit that a share of the requests keeps; see `ChunkingRun.sla_seconds`."""
        return self._mean([run.sla_seconds(phase, share) for run in self.runs])

    @staticmethod
    def _mean(values: list[float]) -> float:
        return sum(values) / len(values)
