"""Loads of an engine: prompts of a set and a workload, with a fixed number of requests at a
time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from testbed.prompts import KINDS, Prompt, prompts

Prompts = Literal["tuning", "unseen"]

MIXED = "mixed"
"""The workload of all kinds of task in equal shares."""

REQUESTS = {1: 8, 2: 16, 4: 16, 8: 24, 16: 32}
"""Number of requests at each concurrency. Every kind of task has the same number, and some requests
follow the first ones.
"""

ALONE = 4
"""Concurrency at which each kind of task is also served alone."""

TOKENS = 24
"""Tokens of every answer except the first ones, which are shorter so that not all requests end at
the same time.
"""

SEED = 100
"""Seed of the prompts. Some of them are also in the logs, and `report.py` counts these."""


@dataclass(frozen=True)
class Load:
    """A load and its prompts.

    Parameters
    ----------
    prompts
        The prompts that tuning may use, or the others.
    workload
        `MIXED`, or a kind of task.
    concurrency
        Requests at a time.
    """

    prompts: Prompts
    workload: str
    concurrency: int

    @property
    def requests(self) -> int:
        """Number of requests."""
        return REQUESTS[self.concurrency] if self.workload == MIXED else len(KINDS)

    @property
    def texts(self) -> list[Prompt]:
        """Return the prompts."""
        drawn = prompts(2 * len(KINDS), training=False, seed=SEED)
        mine = [
            one
            for place, one in enumerate(drawn)
            if (place // len(KINDS)) % 2 == (self.prompts == "unseen")
        ]
        return [prompt for prompt in mine if self.workload in (MIXED, prompt.kind)][: self.requests]

    @property
    def tokens(self) -> list[int]:
        """Return the number of tokens of each answer."""
        first = [TOKENS * (place + 1) // self.concurrency for place in range(self.concurrency)]
        return [max(1, count) for count in first] + [TOKENS] * (self.requests - self.concurrency)


def all_loads(*, alone: bool) -> tuple[Load, ...]:
    """Return the loads of a setting of the engine. With `alone`, they include each kind of task
    alone.
    """
    mixed = [
        Load(of, MIXED, concurrency) for of in ("tuning", "unseen") for concurrency in REQUESTS
    ]
    return (*mixed, *(Load("tuning", kind, ALONE) for kind in KINDS if alone))
