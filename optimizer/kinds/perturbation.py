"""One more unit of one resource: what `sensitivity` adds to a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Perturbation:
    """One more unit of one resource.

    Parameters
    ----------
    field
        The problem's field that changes.
    unit
        What is added, in words.
    apply
        Takes a problem and returns the new value of the field, or None where the problem makes no use of it.
    """

    field: str
    unit: str
    apply: Callable[[Any], Any]


FASTER = 0.99
"""Factor on seconds that are one per cent less."""


def more(field: str, unit: str, change: Callable[[Any], Any]) -> Perturbation:
    """Return the perturbation that changes the value of a field, where it is set and changes by that."""

    def apply(problem: Any) -> Any:
        value = getattr(problem, field)
        changed = None if value is None else change(value)
        return None if changed is None or np.all(changed == value) else changed

    return Perturbation(field, unit, apply)


def faster(field: str, what: str) -> Perturbation:
    """Return the perturbation that takes one per cent off the seconds of a field."""
    return more(field, f"{what} 1 % faster", lambda seconds: FASTER * seconds)


def likelier(field: str, most: float) -> Perturbation:
    """Return the perturbation that raises acceptance rates by 0.01, up to the most that is allowed."""
    return more(field, "+0.01 acceptance rate", lambda rates: np.minimum(rates + 0.01, np.maximum(rates, most)))
