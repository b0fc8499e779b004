"""The staircase of an engine: a batch runs as the next size with a captured graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats, Truths
from specopt.models.pass_time.pass_time import PassTime, Which


@dataclass(frozen=True, eq=False)
class Staircase(PassTime):
    """Passes of captured batches, and of larger ones.

    Parameters
    ----------
    sizes
        Captured batch sizes, increasing.
    within
        Pass times of captured batches.
    outside
        Pass times of larger batches, at least that of the largest captured one.
    jump
        Factor on the times outside.
    start
        Minimum batch size outside: smaller batches outside take its time. Between the largest
        captured batch and the first measured one beyond it, the position of the step is unknown.
    """

    sizes: Floats
    within: PassTime
    outside: PassTime
    jump: float = 1.0
    start: float = 1.0

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """Notes of both parts."""
        return tuple(dict.fromkeys((*self.within.notes, *self.outside.notes)))

    @property
    def has_limits(self) -> bool:
        """Whether one of the parts has limits."""
        return self.within.has_limits or self.outside.has_limits

    @property
    def measured(self) -> str:
        """Measured range of both parts."""
        return " and ".join(
            dict.fromkeys(part.measured for part in (self.within, self.outside) if part.measured)
        )

    @property
    def contexts(self) -> tuple[float, ...]:
        """Cached tokens of both parts."""
        return tuple(sorted({*self.within.contexts, *self.outside.contexts}))

    def seconds(
        self, batch: Floats, new_tokens: Floats, cached_tokens: Floats, which: Which = "fitted"
    ) -> Floats:
        """Return the time of the next captured size, or of the batch itself beyond the largest."""
        captured = self.within.seconds(self._captured(batch), new_tokens, cached_tokens, which)
        beyond = self.jump * self.outside.seconds(
            np.maximum(batch, self.start), new_tokens, cached_tokens, which
        )
        return np.where(batch > self.sizes[-1], np.maximum(captured, beyond), captured)

    def covers(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Truths:
        """Return whether the size at which a batch runs was measured."""
        return np.where(
            batch > self.sizes[-1],
            self.outside.covers(np.maximum(batch, self.start), new_tokens, cached_tokens),
            self.within.covers(self._captured(batch), new_tokens, cached_tokens),
        )

    def _captured(self, batch: Floats) -> Floats:
        return self.sizes[np.minimum(np.searchsorted(self.sizes, batch), len(self.sizes) - 1)]
