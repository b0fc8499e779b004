"""The abstract base class for pass times, which predict the duration of a forward pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

from specopt.models.fields import Floats, Truths

Which = Literal["fitted", "lower", "upper"]


class PassTime(ABC):
    """Base class for models of the duration of a forward pass.

    The duration is a function of the batch size, the number of new tokens per request and the
    number of cached tokens per request. It never decreases if any of these numbers increases.

    Parameters
    ----------
    notes
        Remarks about the model that are shown to the user.
    """

    notes: tuple[str, ...] = ()

    @abstractmethod
    def seconds(
        self, batch: Floats, new_tokens: Floats, cached_tokens: Floats, which: Which = "fitted"
    ) -> Floats:
        """Return the duration of each pass, in seconds.

        Parameters
        ----------
        batch
            Number of requests in each pass. The first three arguments are broadcast.
        new_tokens
            Number of new tokens per request.
        cached_tokens
            Number of cached tokens per request.
        which
            ``"fitted"`` for the predicted durations; ``"lower"`` or ``"upper"`` for lower or upper
            estimates.
        """

    @abstractmethod
    def covers(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Truths:
        """Return a Boolean mask that is true for passes within the measured range. If the range is
        not known, the mask is true for all passes.
        """

    @property
    @abstractmethod
    def measured(self) -> str:
        """Description of the measured range, for example "batches 1-4, new tokens 1-32". The string
        is empty if the range is not known.
        """

    @property
    @abstractmethod
    def has_limits(self) -> bool:
        """Whether the lower and upper limits of a duration may differ from the predicted value."""

    @property
    def contexts(self) -> tuple[float, ...]:
        """Numbers of cached tokens per request in the measured passes. The tuple is empty if they
        are not known.
        """
        return ()


def interval(name: str, low: float, high: float) -> str:
    """Return a string such as "batches 1-4", which describes a measured range in error messages."""
    return f"{name} {low:g}" if low == high else f"{name} {low:g}-{high:g}"
