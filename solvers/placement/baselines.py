"""Baselines for `placement`: all drafts in one place, and clients placed one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from specopt.models.placement.plan import Place
from specopt.solvers.placement.first_plans import filled, one_by_one
from specopt.solvers.placement.method import SimplePlacement
from specopt.solvers.placement.patterns import Pattern
from specopt.solvers.placement.prepare import Prepared


@dataclass(frozen=True)
class OnePlace(SimplePlacement):
    """Base of the methods that draft in one place."""

    place: ClassVar[Place]
    source = "own; what deployments without a planner do"
    guarantee = "none; no plan if a class has no such place, or if there are too few units"
    complexity = "O(options x log clients) evaluations of a unit"

    def patterns(self, prepared: Prepared) -> Counter[Pattern]:
        """Fill units with one class after the other."""
        return filled(prepared, self.place)


@dataclass(frozen=True)
class NoDrafts(OnePlace):
    """Draft nothing."""

    name = "none"
    place = "none"


@dataclass(frozen=True)
class AllBeside(OnePlace):
    """Draft next to the verifier only."""

    name = "all-beside"
    place = "beside"


@dataclass(frozen=True)
class AllDevice(OnePlace):
    """Draft on the devices only."""

    name = "all-device"
    place = "device"


@dataclass(frozen=True)
class GreedyPlacement(SimplePlacement):
    """Place one client at a time (a few at a time if there are many), without draft units."""

    name = "greedy"
    source = "own"
    guarantee = "none; no plan if clients remain when no unit can serve another client"
    complexity = "O(clients x units x options) evaluations of a unit"

    def patterns(self, prepared: Prepared) -> Counter[Pattern]:
        """Place clients class by class."""
        return one_by_one(prepared)


BASELINES = (
    NoDrafts,
    AllBeside,
    AllDevice,
    GreedyPlacement,
)
