"""Pass times of engines that capture CUDA graphs for certain batch sizes.

Each batch is padded to the smallest captured size that can hold it, so the pass time is a step
function of the batch size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats, Truths
from specopt.models.pass_time.pass_time import PassTime, Which


@dataclass(frozen=True, eq=False)
class Staircase(PassTime):
    """Pass times that increase in steps up to the largest captured batch size.

    Parameters
    ----------
    sizes
        Captured batch sizes, in increasing order.
    within
        Pass times of batches up to the largest captured size.
    outside
        Pass times of larger batches. Values below the pass time at the largest captured size are
        raised to that time.
    jump
        Factor by which the values of `outside` are multiplied.
    start
        Minimum batch size at which `outside` is evaluated. Batches between the largest captured
        size and this size are treated as batches of this size.
    """

    sizes: Floats
    within: PassTime
    outside: PassTime
    jump: float = 1.0
    start: float = 1.0

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """Remarks about `within` and `outside` that are shown to the user."""
        return tuple(dict.fromkeys((*self.within.notes, *self.outside.notes)))

    @property
    def has_limits(self) -> bool:
        """Whether `within` or `outside` has limits."""
        return self.within.has_limits or self.outside.has_limits

    @property
    def measured(self) -> str:
        """Description of the measured ranges of `within` and `outside`, used in error messages."""
        return " and ".join(
            dict.fromkeys(part.measured for part in (self.within, self.outside) if part.measured)
        )

    @property
    def contexts(self) -> tuple[float, ...]:
        """Numbers of cached tokens per request in the measured passes of `within` and `outside`."""
        return tuple(sorted({*self.within.contexts, *self.outside.contexts}))

    def seconds(
        self, batch: Floats, new_tokens: Floats, cached_tokens: Floats, which: Which = "fitted"
    ) -> Floats:
        """Return the duration of each pass, in seconds.

        Each batch is padded to the smallest captured size that can hold it, or runs at its actual
        size if it exceeds every captured size.
        """
        captured = self.within.seconds(self._captured(batch), new_tokens, cached_tokens, which)
        beyond = self.jump * self.outside.seconds(
            np.maximum(batch, self.start), new_tokens, cached_tokens, which
        )
        return np.where(batch > self.sizes[-1], np.maximum(captured, beyond), captured)

    def covers(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Truths:
        """Return a Boolean mask that is true for passes whose batch runs at a size within the
        measured range.
        """
        return np.where(
            batch > self.sizes[-1],
            self.outside.covers(np.maximum(batch, self.start), new_tokens, cached_tokens),
            self.within.covers(self._captured(batch), new_tokens, cached_tokens),
        )

    def _captured(self, batch: Floats) -> Floats:
        return self.sizes[np.minimum(np.searchsorted(self.sizes, batch), len(self.sizes) - 1)]
