"""Measurements of a server under a load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from specopt.models.fields import Count, NonNegative

PARTS = 5
"""A load is measured in this many parts, whose spread gives the standard error of the mean."""

HALF = 0.5
"""The configured draft length is used if the drafts per step differ from it by at most this much.
Engines that draft by a table differ by more.
"""


@dataclass(frozen=True)
class Load:
    """Measurements under one load.

    Parameters
    ----------
    tokens_per_second
        Output of all requests together.
    first_token_seconds
        Mean time to the first token.
    acceptance_length
        Mean tokens of a step with drafts; None if unknown.
    deviation
        Standard error of the output's logarithm; 0 if there is only one figure.
    counted
        Numbers of drafts, of draft tokens, and of accepted tokens by position; empty if the engine
        does not count them.
    requests
        Number of requests; 0 if another program counts them.
    failed
        Number of requests that failed twice; 0 if another program counts them.
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
    """Measurements of a server at a number of concurrent requests, with its configured draft length
    (or None).
    """

    concurrency: int
    configured: int | None
    load: Load

    @property
    def place(self) -> tuple[int, int | None]:
        """Load and drafts per step; the drafts are those counted if the engine drafts by a
        table.
        """
        drafts, tokens, *_ = self.load.counted or (1.0, self.configured or 0.0)
        length = self.configured
        mean = tokens / max(drafts, 1.0)
        return self.concurrency, round(mean) if length and abs(mean - length) > HALF else length


def name_of(length: int | None) -> int | str:
    """Return a draft length as it is written in files."""
    return "none" if length is None else length
