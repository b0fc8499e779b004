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
    guarantee = "none; no plan where some class has no such place, or units are too few"
    complexity = "O(options x log clients) evaluations of a unit"

    def patterns(self, prepared: Prepared) -> Counter[Pattern]:
        """Fill units with one class after the other."""
        return filled(prepared, self.place)


@dataclass(frozen=True)
class NoDrafts(OnePlace):
    """Nobody drafts."""

    name = "none"
    place = "none"


@dataclass(frozen=True)
class AllBeside(OnePlace):
    """All drafts come from beside the verifier."""

    name = "all-beside"
    place = "beside"


@dataclass(frozen=True)
class AllDevice(OnePlace):
    """All drafts come from the devices."""

    name = "all-device"
    place = "device"


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


BASELINES = (
    NoDrafts,
    AllBeside,
    AllDevice,
    GreedyPlacement,
)
