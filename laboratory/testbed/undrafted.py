"""The yield without drafting, from the passes of a record, as the baseline of all plans with
drafts.

A record without plays or rounds without drafts does not have this baseline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.draft_control.problem import DraftControlProblem
from testbed.comparison import points_of, quantities
from testbed.studies.resampling import Interval, interval

AUTOREGRESSIVE = "autoregressive"


@dataclass(frozen=True, kw_only=True)
class Undrafted:
    """Measured plans with drafts, compared with no drafts.

    Parameters
    ----------
    kind, scene, quantity
        Kind, scene and quantity. Scene None means that the values are the same in all scenes.
    drafted
        Medians of the worst and the best plan with drafts.
    undrafted
        Value without drafts, as an interval if it comes from rounds.
    source
        Source of this value.
    """

    kind: str
    scene: int | None
    quantity: str
    drafted: tuple[float, float]
    undrafted: Interval
    source: str


def undrafted(record: Mapping[str, Any]) -> list[Undrafted]:
    """Return the baselines without drafts for the plans of a record, if its plays have any."""
    if record["kind"] == DraftControlProblem.kind:
        return _rounds(record)
    known = [one for one in quantities(record) if one[0] == "model"]
    points = points_of(record, *known[0])
    found = []
    for scene in sorted({point.scene for point in points}):
        mine = [point for point in points if point.scene == scene]
        plain = [point.measured for point in mine if point.label == AUTOREGRESSIVE]
        drafted = [point.measured for point in mine if point.label != AUTOREGRESSIVE]
        if plain:
            best = Interval(min(plain), float("nan"), float("nan"))
            ends = max(drafted), min(drafted)
            source = "best autoregressive plan played"
            found.append(
                Undrafted(
                    kind=record["kind"],
                    scene=scene,
                    quantity=known[0][1],
                    drafted=ends,
                    undrafted=best,
                    source=source,
                )
            )
    return found


def _rounds(record: Mapping[str, Any]) -> list[Undrafted]:
    """Return tokens per second of the rounds in which policies draft nothing, so that nothing is
    uploaded.
    """
    rows: list[tuple[int, float]] = []  # for each such round, the play and its seconds
    for trial in record["trials"]:
        lengths = [
            trial["plan"]["policy"][state]["draft_length"]
            for state in record["states"][trial["scene"]]
        ]
        for play in trial["measured"]:
            number = rows[-1][0] + 1 if rows else 0
            rows += [
                (number, one)
                for length, one in zip(lengths, play["seconds"], strict=True)
                if not length
            ]
    if not rows:
        return []
    plays, seconds = zip(*rows, strict=True)
    drafting = [
        one
        for one in record["trials"]
        if any(choice["draft_length"] for choice in one["plan"]["policy"])
    ]
    points = points_of({**record, "trials": drafting}, "model", "tokens_per_second")
    speed = interval(np.ones(len(seconds)), plays, weights=seconds)
    ends = min(point.measured for point in points), max(point.measured for point in points)
    source = f"{len(seconds)} rounds without drafts in the plays"
    return [
        Undrafted(
            kind=record["kind"],
            scene=None,
            quantity="tokens_per_second",
            drafted=ends,
            undrafted=speed,
            source=source,
        )
    ]
