"""Whether the place that the model chooses is the best of those played."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testbed.comparison import Point, points_of

CLOSE = 0.03
"""A choice that loses so little is as good as the best."""


AT_THE_UNIT = ("none", "beside")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the model chose for a number of clients and a round trip, and what was best.

    Parameters
    ----------
    clients, round_trip_seconds
        The scene.
    chosen, best
        The plan of the model's choice, and the one that measured best.
    """

    clients: int
    round_trip_seconds: float
    chosen: Point
    best: Point

    @property
    def lost(self) -> float:
        """What the choice measured below the best, as a share of it."""
        return 1.0 - self.chosen.measured / self.best.measured

    @property
    def verdict(self) -> str:
        """How good the choice is: the best plan, nearly as good, of the best place, not told apart,
        or worse.
        """
        if self.chosen is self.best:
            return "the best"
        if self.lost <= CLOSE:
            return f"within {CLOSE:.0%}"
        if place(self.chosen) == place(self.best):
            return "best place, other length"
        return (
            "not told apart"
            if max(self.chosen.repetitions) >= min(self.best.repetitions)
            else "worse"
        )


def place(point: Point) -> str:
    """Return the place of a plan, without its draft length."""
    return point.methods[0].split("-")[0]


def choices(record: Mapping[str, Any]) -> list[Choice]:
    """Return the choice of every scene of a record of placement.

    What devices have no part in was played once for every number of clients.
    """
    clients = {trial["scene"]: trial["clients"] for trial in record["trials"]}
    trips = {trial["scene"]: trial["round_trip_seconds"] for trial in record["trials"]}
    points = points_of(record, "model", "tokens_per_second")
    found = []
    for scene in sorted(trips):
        alike = [
            point
            for point in points
            if point.scene == scene
            or (clients[point.scene] == clients[scene] and place(point) in AT_THE_UNIT)
        ]
        chosen, best = (
            max(alike, key=key) for key in (lambda one: one.predicted, lambda one: one.measured)
        )
        found.append(
            Choice(
                clients=clients[scene], round_trip_seconds=trips[scene], chosen=chosen, best=best
            )
        )
    return found
