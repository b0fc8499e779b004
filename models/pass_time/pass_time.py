"""Base of pass times: seconds of a pass, their limits, and the measured range."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

from specopt.models.fields import Floats, Truths

Which = Literal["fitted", "lower", "upper"]


class PassTime(ABC):
    """T(batch, new tokens per request, cached tokens per request), never decreasing in any of them.

    Parameters
    ----------
    notes
        Notes for the reader.
    """

    notes: tuple[str, ...] = ()

    @abstractmethod
    def seconds(
        self, batch: Floats, new_tokens: Floats, cached_tokens: Floats, which: Which = "fitted"
    ) -> Floats:
        """Return the seconds of passes; the arrays are broadcast. Each pass lies within its
        limits.
        """

    @abstractmethod
    def covers(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Truths:
        """Return a mask of the passes within the measured range; all are within an unknown
        range.
        """

    @property
    @abstractmethod
    def measured(self) -> str:
        """Measured range for messages, for example "batches 1-4, new tokens 1-32"; empty if
        unknown.
        """

    @property
    @abstractmethod
    def has_limits(self) -> bool:
        """Whether there are limits of the coefficients, of the form's misfit or of the measured
        times.
        """

    @property
    def contexts(self) -> tuple[float, ...]:
        """Cached tokens per request of the measured passes; empty if unknown."""
        return ()


def interval(name: str, low: float, high: float) -> str:
    """Return a measured interval for messages."""
    return f"{name} {low:g}" if low == high else f"{name} {low:g}-{high:g}"
