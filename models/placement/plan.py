"""Plan classes for `placement` problems.

A *unit* is one machine. A plan consists of groups of identical units that verify, and groups of
identical units that draft for the verifiers.
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
    """A drafter that runs on the same units as the verifier.

    Parameters
    ----------
    drafter
        Name of the drafter.
    draft_tokens
        Draft length for all clients on the unit.
    """

    drafter: str
    draft_tokens: PositiveInt


@dataclass(frozen=True, kw_only=True)
class Served:
    """The clients of one class that each unit of a group serves, and the source of their drafts.

    Parameters
    ----------
    class
        Name of the client class.
    per_unit
        Number of these clients on each unit.
    place
        Where drafts are generated: "beside" the verifier on its unit, on the client's "device", in
        a draft "pool", or "none" for clients without drafts.
    drafter
        Name of the drafter. It is required if `place` is "device", and not allowed otherwise.
    draft_tokens
        Draft length. It is required if `place` is "device" or "pool", and not allowed otherwise.
    overlap
        Whether the device continues drafting while the verifier processes the previous draft.
    draft_group
        Index of the draft group. It is required if `place` is "pool", and not allowed otherwise.
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
    """A group of units that run the same verifier and serve the same numbers of clients.

    Parameters
    ----------
    verifier
        Name of the verifier.
    units
        Number of units in the group.
    beside
        Drafter that runs on the same units, or None if there is none.
    clients
        Clients that each unit serves.
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
        Name of the draft pool.
    drafter
        Name of the drafter.
    units
        Number of units in the group.
    per_unit
        Number of clients per unit, which is the number of clients that use the group divided by
        `units`, rounded up.
    """

    pool: str
    drafter: str
    units: PositiveInt
    per_unit: PositiveInt


@dataclass(frozen=True, kw_only=True, eq=False)
class PlacementPlan(Plan):
    """A plan that consists of groups of verifying units and groups of drafting units.

    Parameters
    ----------
    groups
        Groups of units that serve clients. If there are none, no clients are served.
    draft_groups
        Groups of units in draft pools that draft for the clients in `groups`.
    """

    groups: Objects[UnitGroup] = required()
    draft_groups: Objects[DraftGroup] = empty()
