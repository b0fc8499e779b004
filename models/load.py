"""Data types for measurements of a server's throughput, latency and acceptance under load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from specopt.models.fields import Count, NonNegative

PARTS = 5
"""Number of parts into which each load measurement is divided. The variation between the parts
determines the standard error of the mean.
"""

HALF = 0.5
"""If the mean number of draft tokens per step differs from the configured draft length by more than
this value, the engine is assumed not to use the configured length. For example, it may read draft
lengths from a table.
"""


@dataclass(frozen=True)
class Load:
    """Measurements of a server under one load: throughput, latency and acceptance.

    Parameters
    ----------
    tokens_per_second
        Total number of output tokens per second over all requests.
    first_token_seconds
        Mean time to first token, in seconds.
    acceptance_length
        Mean number of tokens per step among steps with drafts, or None if unknown.
    deviation
        Standard error of the logarithm of `tokens_per_second`, or 0 if there is only one
        measurement.
    counted
        Number of drafts, number of draft tokens, and number of accepted tokens at each position.
        The tuple is empty if the engine does not report these counts.
    requests
        Number of requests, or 0 if another program generated the load.
    failed
        Number of requests that failed even after retries, or 0 if another program generated the
        load.
    """

    tokens_per_second: Annotated[float, Meta(gt=0.0, le=1e12)]
    first_token_seconds: NonNegative
    acceptance_length: float | None
    deviation: Annotated[float, Meta(ge=0.0, le=10.0)] = 0.0
    counted: tuple[NonNegative, ...] = ()
    requests: Count = 0
    failed: Count = 0

    def __str__(self) -> str:
        failed = f", {self.failed} of {self.requests} requests failed" if self.failed else ""
        return f"{self.tokens_per_second:.4g} tokens/s{failed}"


@dataclass(frozen=True)
class Seen:
    """A load measurement together with the number of concurrent requests and the configured draft
    length. The draft length is None if no drafts are configured.
    """

    concurrency: int
    configured: int | None
    load: Load

    @property
    def place(self) -> tuple[int, int | None]:
        """A tuple of the number of concurrent requests and the number of draft tokens per step.

        The number of draft tokens is the configured draft length. If the measured mean draft length
        differs from the configured length by more than `HALF`, the rounded mean is used instead.
        """
        drafts, tokens, *_ = self.load.counted or (1.0, self.configured or 0.0)
        length = self.configured
        mean = tokens / max(drafts, 1.0)
        return self.concurrency, round(mean) if length and abs(mean - length) > HALF else length


def name_of(length: int | None) -> int | str:
    """Return a draft length as it is written to files. None becomes "none"."""
    return "none" if length is None else length
