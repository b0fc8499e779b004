"""What an engine is asked: prompts of a set and a workload, a fixed number at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from testbed.prompts import KINDS, Prompt, prompts

Prompts = Literal["tuning", "unseen"]

MIXED = "mixed"
"""The workload of all kinds of task in equal shares."""

REQUESTS = {1: 8, 2: 16, 4: 16, 8: 24, 16: 32}
"""How many requests are served at each concurrency: every kind of task equally often, and some
behind the first.
"""

ALONE = 4
"""Concurrency at which each kind of task is asked on its own, too."""

TOKENS = 24
"""Of every answer but the first ones, which are shorter so that not all requests end at once."""

SEED = 100
"""Of prompts; some of the logs are among them, as `report.py` counts."""


@dataclass(frozen=True)
class Load:
    """A load, and the prompts it takes them from.

    Parameters
    ----------
    prompts
        Those that tuning may see, or others.
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
        """How many are served."""
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
        """Return how many tokens each answer has."""
        first = [TOKENS * (place + 1) // self.concurrency for place in range(self.concurrency)]
        return [max(1, count) for count in first] + [TOKENS] * (self.requests - self.concurrency)


def all_loads(*, alone: bool) -> tuple[Load, ...]:
    """Return what a setting of the engine serves; `alone`: each kind of task on its own, too."""
    mixed = [
        Load(of, MIXED, concurrency) for of in ("tuning", "unseen") for concurrency in REQUESTS
    ]
    return (*mixed, *(Load("tuning", kind, ALONE) for kind in KINDS if alone))
