"""The base class of pass times, with the duration of a pass, its limits, and the measured range."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

from specopt.models.fields import Floats, Truths

Which = Literal["fitted", "lower", "upper"]


class PassTime(ABC):
    """Base class for the duration T of a pass, as a function of the batch size, the new tokens per
    request and the cached tokens per request. T never decreases in any argument.

    Parameters
    ----------
    notes
        Notes that are shown to the user.
    """

    notes: tuple[str, ...] = ()

    @abstractmethod
    def seconds(
        self, batch: Floats, new_tokens: Floats, cached_tokens: Floats, which: Which = "fitted"
    ) -> Floats:
        """Return the durations of passes, in seconds. The arguments are broadcast. Fitted durations
        lie between the lower and the upper limits.
        """

    @abstractmethod
    def covers(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Truths:
        """Return a mask of the passes within the measured range. If the range is unknown, the mask
        is true for all passes.
        """

    @property
    @abstractmethod
    def measured(self) -> str:
        """Measured range in words, for example "batches 1-4, new tokens 1-32"; empty if unknown."""

    @property
    @abstractmethod
    def has_limits(self) -> bool:
        """Whether the coefficients or the measured times have limits, or the misfit is known."""

    @property
    def contexts(self) -> tuple[float, ...]:
        """Numbers of cached tokens per request in the measured passes; empty if unknown."""
        return ()


def interval(name: str, low: float, high: float) -> str:
    """Return a text that describes a measured interval in messages."""
    return f"{name} {low:g}" if low == high else f"{name} {low:g}-{high:g}"
