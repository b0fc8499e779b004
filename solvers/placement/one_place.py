"""One place for all drafts: what the simple methods share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from specopt.models.placement_plan import Place
from specopt.solvers.placement.first_plans import filled
from specopt.solvers.placement.method import SimplePlacement
from specopt.solvers.placement.patterns import Pattern
from specopt.solvers.placement.prepare import Prepared


@dataclass(frozen=True)
class OnePlace(SimplePlacement):
    """Base of the methods that draft in one place."""

    place: ClassVar[Place]
    source = "own; what deployments without a planner do"
    guarantee = "none; no plan where some class has no such place, or units are too few"
    complexity = "O(options x log clients) evaluations of a unit"

    def patterns(self, prepared: Prepared) -> Counter[Pattern]:
        """Fill units with one class after the other."""
        return filled(prepared, self.place)
