"""How plans of a kind are played with random acceptances: what `simulate` calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """A simulator of plans.

    Parameters
    ----------
    play
        Function of a problem, a plan and, by keyword, replications, seed, callback and options of its own. The callback
        takes the replications done and their mean.
    mean
        Format of that mean, with its unit.
    """

    play: Callable[..., Any]
    mean: str

    @property
    def options(self) -> tuple[str, ...]:
        """Keywords that this simulator has of its own."""
        keywords = (p.name for p in inspect.signature(self.play).parameters.values() if p.kind is p.KEYWORD_ONLY)
        return tuple(name for name in keywords if name not in ("replications", "seed", "callback"))
