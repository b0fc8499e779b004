"""What a server did under a load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from specopt.models.fields import Count, NonNegative

PARTS = 5
"""Of a load, whose spread says how sure its mean is."""

HALF = 0.5
"""Drafts of a step: engines that draft by a table are farther off the length that they are
configured with.
"""


@dataclass(frozen=True)
class Load:
    """What was measured.

    Parameters
    ----------
    tokens_per_second, first_token_seconds
        Output of all requests together, and their mean wait for a first token.
    acceptance_length
        Mean tokens of a step with drafts; None: not known.
    deviation
        Standard error of the output's logarithm; 0 where one figure is all there is.
    counted
        Drafts, their tokens, and those accepted by position; empty where the engine counts none.
    requests, failed
        How many requests were made, and how many of these failed twice; 0 where another program
        counts them.
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
    """What a server did with so many requests at a time, and the draft length that it is configured
    with (or None).
    """

    concurrency: int
    configured: int | None
    load: Load

    @property
    def place(self) -> tuple[int, int | None]:
        """Load and drafts of a step: as counted, where an engine drafts by a table."""
        drafts, tokens, *_ = self.load.counted or (1.0, self.configured or 0.0)
        length, mean = self.configured, tokens / max(drafts, 1.0)
        return self.concurrency, round(mean) if length and abs(mean - length) > HALF else length


def name_of(length: int | None) -> int | str:
    """Return a draft length as files spell it."""
    return "none" if length is None else length
