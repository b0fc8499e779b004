"""Clients one by one, each to the unit and option that gain most."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from specopt.solvers.placement.first_plans import one_by_one
from specopt.solvers.placement.method import SimplePlacement
from specopt.solvers.placement.patterns import Pattern
from specopt.solvers.placement.prepare import Prepared


@dataclass(frozen=True)
class GreedyPlacement(SimplePlacement):
    """One client at a time (with many clients, a few at a time), drafting units aside."""

    name = "greedy"
    source = "own"
    guarantee = "none; no plan where clients are left when no unit can take one more"
    complexity = "O(clients x units x options) evaluations of a unit"

    def patterns(self, prepared: Prepared) -> Counter[Pattern]:
        """Place clients class by class."""
        return one_by_one(prepared)
