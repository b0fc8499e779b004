"""One more unit of one resource: what `sensitivity` adds to a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


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
