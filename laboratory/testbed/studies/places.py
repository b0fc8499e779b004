"""Whether the place chosen by the model is the best of those played."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testbed.comparison import Point, points_of

CLOSE = 0.03
"""A choice that loses at most this share is as good as the best."""


AT_THE_UNIT = ("none", "beside")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The choice of the model for a number of clients and a round trip, and the best plan.

    Parameters
    ----------
    clients, round_trip_seconds
        Number of clients, and mean round trip.
    chosen, best
        Plan chosen by the model, and the plan with the best measurement.
    """

    clients: int
    round_trip_seconds: float
    chosen: Point
    best: Point

    @property
    def lost(self) -> float:
        """Difference between the measurements of the choice and of the best plan, as a share of the
        latter.
        """
        return 1.0 - self.chosen.measured / self.best.measured

    @property
    def verdict(self) -> str:
        """Verdict on the choice: the best plan, nearly as good, of the best place, not
        distinguishable, or worse.
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

    Plans without devices were played once for every number of clients.
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
