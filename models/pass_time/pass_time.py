"""What a pass time is: seconds of a pass, limits of them, and where they were measured."""

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
        What a reader should know.
    """

    notes: tuple[str, ...] = ()

    @abstractmethod
    def seconds(
        self, batch: Floats, new_tokens: Floats, cached_tokens: Floats, which: Which = "fitted"
    ) -> Floats:
        """Return seconds of passes; the arrays are broadcast. Each pass lies within its limits by
        itself.
        """

    @abstractmethod
    def covers(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Truths:
        """Return which passes are within what was measured; all, where nothing is known of that."""

    @property
    @abstractmethod
    def measured(self) -> str:
        """What was measured, for messages: "batches 1-4, new tokens 1-32"; empty where nothing
        tells.
        """

    @property
    @abstractmethod
    def has_limits(self) -> bool:
        """Whether there are limits, of the coefficients, of the form's misfit or of the measured
        times.
        """

    @property
    def contexts(self) -> tuple[float, ...]:
        """Cached tokens per request that passes were measured with; none where that is not
        known.
        """
        return ()


def interval(name: str, low: float, high: float) -> str:
    """Return a measured interval for messages."""
    return f"{name} {low:g}" if low == high else f"{name} {low:g}-{high:g}"
