"""Baselines for `placement`, which draft in a single place or assign clients one at a time."""

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
    """Base class of the methods that draft in a single place.

    The place is next to the verifier, on the devices, or nowhere.
    """

    place: ClassVar[Place]
    source = "specopt; what deployments without a planner do"
    guarantee = (
        "none; finds no plan if a class cannot draft in this place or if there are too few units"
    )
    complexity = "O(options x log clients) evaluations of a unit"

    def patterns(self, prepared: Prepared) -> Counter[Pattern]:
        """Return patterns in which each unit serves clients of one class, drafting in `place`."""
        return filled(prepared, self.place)


@dataclass(frozen=True)
class NoDrafts(OnePlace):
    """Serve every client without drafts."""

    name = "none"
    place = "none"


@dataclass(frozen=True)
class AllBeside(OnePlace):
    """Draft for every client next to the verifier that serves the client."""

    name = "all-beside"
    place = "beside"


@dataclass(frozen=True)
class AllDevice(OnePlace):
    """Draft for every client on the client's device."""

    name = "all-device"
    place = "device"


@dataclass(frozen=True)
class GreedyPlacement(SimplePlacement):
    """Assign clients to units one at a time, or in small groups if there are many clients.

    Draft units are not used.
    """

    name = "greedy"
    source = "specopt"
    guarantee = "none; finds no plan if clients remain when no unit can serve another client"
    complexity = "O(clients x units x options) evaluations of a unit"

    def patterns(self, prepared: Prepared) -> Counter[Pattern]:
        """Return the patterns that result from assigning the clients one at a time."""
        return one_by_one(prepared)


BASELINES = (
    NoDrafts,
    AllBeside,
    AllDevice,
    GreedyPlacement,
)
