"""Measurements of a server under a given load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from specopt.models.fields import Count, NonNegative

PARTS = 5
"""Number of parts in which a load is measured. Their spread determines the standard error of the
mean.
"""

HALF = 0.5
"""If the mean number of draft tokens per step differs from the configured draft length by at most
this value, the configured length is used. The difference is larger if an engine reads draft lengths
from a table.
"""


@dataclass(frozen=True)
class Load:
    """Measurements of a server under one load: throughput, latency and acceptance.

    Parameters
    ----------
    tokens_per_second
        Output tokens per second, over all requests.
    first_token_seconds
        Mean time to the first token.
    acceptance_length
        Mean number of tokens per step with drafts; None if unknown.
    deviation
        Standard error of the logarithm of `tokens_per_second`; 0 if there is only one measurement.
    counted
        Number of drafts, number of draft tokens, and number of accepted tokens at each position;
        empty if the engine does not report these counts.
    requests
        Number of requests; 0 if another program counts requests.
    failed
        Number of requests that failed even after retries; 0 if another program counts requests.
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
    """Measurements of a server at a given number of concurrent requests and with a given configured
    draft length, which may be None.
    """

    concurrency: int
    configured: int | None
    load: Load

    @property
    def place(self) -> tuple[int, int | None]:
        """Number of concurrent requests and number of draft tokens per step.

        The number of draft tokens is the configured draft length. If the measured mean draft length
        differs from the configured length by more than `HALF`, the rounded mean is used instead.
        """
        drafts, tokens, *_ = self.load.counted or (1.0, self.configured or 0.0)
        length = self.configured
        mean = tokens / max(drafts, 1.0)
        return self.concurrency, round(mean) if length and abs(mean - length) > HALF else length


def name_of(length: int | None) -> int | str:
    """Return the form in which a draft length is written to files."""
    return "none" if length is None else length
