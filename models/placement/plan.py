"""Plans for `placement` problems: groups of identical verifier units, and groups of units that
draft for the verifiers. A *unit* is one machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Checked,
    Objects,
    PositiveInt,
    SomeObjects,
    check,
    empty,
    required,
)
from specopt.models.problem import Plan

Place = Literal["none", "beside", "device", "pool"]
PLACES: tuple[Place, ...] = ("none", "beside", "device", "pool")


@dataclass(frozen=True, kw_only=True)
class Beside(Checked):
    """A drafter that runs on the verifier's own units.

    Parameters
    ----------
    drafter
        Name of the drafter.
    draft_tokens
        Draft length for all clients of the unit.
    """

    drafter: str
    draft_tokens: PositiveInt


@dataclass(frozen=True, kw_only=True)
class Served:
    """The clients of one class on each unit of a group.

    Parameters
    ----------
    class
        Name of the class.
    per_unit
        Number of clients on each unit.
    place
        Place where drafts are made: "none", "beside" the verifier, "device" or "pool".
    drafter
        Name of the drafter; used only if the place is "device".
    draft_tokens
        Draft length; used only if the place is "device" or "pool".
    overlap
        Whether the device drafts ahead while the verifier works.
    draft_group
        Index of the draft group; used only if the place is "pool".
    """

    class_: str
    per_unit: PositiveInt
    place: Place
    drafter: str | None = None
    draft_tokens: PositiveInt | None = None
    overlap: bool = False
    draft_group: Annotated[int, Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        check(self)
        allowed = {
            "device": {"drafter", "draft_tokens"},
            "pool": {"draft_tokens", "draft_group"},
        }.get(self.place, set())
        for name in ("drafter", "draft_tokens", "draft_group"):
            given = getattr(self, name) is not None
            if given != (name in allowed):
                message = "missing; required" if not given else "not allowed"
                raise InvalidInput(f"{name}: {message} when place is {self.place!r}")
        if self.overlap and self.place != "device":
            raise InvalidInput(f"overlap: expected false when place is {self.place!r}, got true")


@dataclass(frozen=True, kw_only=True)
class UnitGroup:
    """A group of identical units of one verifier.

    Parameters
    ----------
    verifier
        Name of the verifier.
    units
        Number of units.
    beside
        Drafter that runs on the same units; null if there is none.
    clients
        Clients on each unit.
    """

    verifier: str
    units: PositiveInt
    clients: SomeObjects[Served] = required()
    beside: Beside | None = None

    def __post_init__(self) -> None:
        check(self)
        for at, one in enumerate(self.clients):
            if (one.place == "beside") != (self.beside is not None):
                has = "with" if self.beside else "without"
                raise InvalidInput(
                    f"clients[{at}].place: expected {'' if self.beside else 'not '}'beside' on a"
                    f" unit {has} a drafter next to the verifier, got {one.place!r}"
                )


@dataclass(frozen=True, kw_only=True)
class DraftGroup(Checked):
    """A group of units in a draft pool that run the same drafter.

    Parameters
    ----------
    pool
        Name of the pool.
    drafter
        Name of the drafter.
    units
        Number of units.
    per_unit
        Number of clients per unit: the number of clients that use the group, divided by `units` and
        rounded up.
    """

    pool: str
    drafter: str
    units: PositiveInt
    per_unit: PositiveInt


@dataclass(frozen=True, kw_only=True, eq=False)
class PlacementPlan(Plan):
    """Groups of verifier units and groups of drafting units.

    Parameters
    ----------
    groups
        Groups of units that serve clients; if empty, no clients are served.
    draft_groups
        Groups of drafting units that draft for the clients in `groups`.
    """

    groups: Objects[UnitGroup] = required()
    draft_groups: Objects[DraftGroup] = empty()
