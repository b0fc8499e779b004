"""Bands around the predictions of the throughput law, based on cross-validation errors.

The law is refitted without each draft length, without each load except the smallest and the
largest, and without all but one draft length of each row. A row is a load at a place, and a place
is a workload with a context. Each error is divided by the distance to the remaining points. The
errors are pooled with `MISSES`, the errors in other sweeps. The half-width of a band is a quantile
of the pooled errors, multiplied by the distance to the measured points. Therefore, a sweep with few
measurements has bands similar to those of other sweeps.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from specopt.models.sweep import Point
from specopt.solvers.speculation_table.tuning.law import Law, Place, place_of

MISSES: Mapping[str, tuple[float, ...]] = {
    "length": (0.01, 0.03, 0.06, 0.09, 0.13, 0.2, 0.28, 0.37, 0.54, 1.0),
    "end": (0.03, 0.083, 0.14, 0.18, 0.22, 0.29, 0.36, 0.43, 0.64, 1.4),
    "load": (0.01, 0.03, 0.06, 0.09, 0.12, 0.17, 0.21, 0.24, 0.3, 0.45),
    "gain": (0.017, 0.032, 0.033, 0.045, 0.051, 0.086, 0.12, 0.17, 0.19, 0.47),
    "row": (0.006, 0.019, 0.033, 0.047, 0.072, 0.097, 0.13, 0.18, 0.27, 0.46),
}
"""Errors of the throughput law in the project's measured sweeps, as equally spaced quantiles.

"length" applies to a draft length between measured lengths, and "end" applies to a draft length
beyond the measured lengths. "load" applies to the throughput at a load without any measurement, and
"gain" applies to the speed-up at such a load. "row" applies to a draft length that was measured
only at other loads or workloads.
"""

_REFITS = 24  # maximum number of refits without most of a row
_OWN = 3  # weight of an error in the sweep itself
_OWN_LOAD = 2  # the same at a withheld load, where errors are strongly correlated

Rows = Mapping[tuple[Place, int], Collection[int | None]]
"""Measured draft lengths for each row, which is a place and a load."""


class Bands:
    """Half-widths of the prediction bands, in units of log throughput.

    Parameters
    ----------
    speeds
        Logarithms of the per-request throughput at the measured points.
    lengths
        Acceptance lengths at the measured points.
    """

    def __init__(self, speeds: Mapping[Point, float], lengths: Mapping[Point, float]) -> None:
        self._speeds, self._lengths, self._rows = speeds, lengths, _rows(speeds)
        self._misses = {kind: list(misses) for kind, misses in MISSES.items()}
        self._drafts = sorted({point.draft_length for point in speeds if point.draft_length})
        for length in self._drafts:
            hidden = [point for point in speeds if point.draft_length == length]
            self._add_misses(self._kind(length), hidden)
        for load in sorted({point.condition.concurrency for point in speeds})[1:-1]:
            self._add_misses("load", [p for p in speeds if p.condition.concurrency == load])
        for condition in sorted({p.condition for p in speeds} if len(self._rows) > 1 else ())[
            :_REFITS
        ]:
            row = sorted(
                (p for p in speeds if p.condition == condition and p.draft_length),
                key=lambda p: p.draft_length or 0,
            )
            self._add_misses("row", row[: len(row) // 2] + row[len(row) // 2 + 1 :])

    def at(self, point: Point, confidence: float) -> tuple[float, float]:
        """Return the half-widths of a point's bands, for log throughput and log speed-up."""
        of_length, of_load = _distances(point, self._rows)
        length = point.draft_length
        kind = "row" if length is None or length in self._drafts else self._kind(length)
        of_length *= float(np.quantile(self._misses[kind], confidence))
        speed, gain = (np.quantile(self._misses[of], confidence) for of in ("load", "gain"))
        return math.hypot(of_length, of_load * speed), math.hypot(of_length, of_load * gain)

    def _kind(self, length: int) -> str:
        return "length" if self._drafts[0] < length < self._drafts[-1] else "end"

    def _add_misses(self, kind: str, hidden: Collection[Point]) -> None:
        """Refit the law without the points `hidden`, and store its errors at these points."""
        kept = {point: speed for point, speed in self._speeds.items() if point not in hidden}
        rows = _rows(kept)
        places = {place for place, _ in rows}
        hidden = [point for point in hidden if place_of(point) in places]
        if not hidden or not any(point.draft_length for point in kept):
            return
        lengths = {point: tokens for point, tokens in self._lengths.items() if point in kept}
        values = Law(kept, lengths).at(hidden)
        missed = dict(zip(hidden, values - [self._speeds[p] for p in hidden], strict=True))
        for point, miss in missed.items():
            far = sum(_distances(point, rows))
            times = _OWN_LOAD if kind == "load" else _OWN
            self._misses[kind] += [abs(float(miss)) / far] * times if far else []
            base = missed.get(Point(point.condition, None))
            if kind == "load" and base is not None and point.draft_length is not None:
                self._misses["gain"] += [abs(float(miss - base)) / far] * _OWN_LOAD


def _rows(points: Iterable[Point]) -> Rows:
    found: dict[tuple[Place, int], set[int | None]] = defaultdict(set)
    for point in points:
        found[place_of(point), point.condition.concurrency].add(point.draft_length)
    return found


def _distances(point: Point, rows: Rows) -> tuple[float, float]:
    """Return the distances of a point from known draft lengths and from known loads.

    The first distance is measured in log(1 + K), where no speculation is treated as 0 drafts. The
    second is measured in the logarithm of the load.
    """
    place, load, length = place_of(point), point.condition.concurrency, point.draft_length
    own = {c: known for (at, c), known in rows.items() if at == place}
    row = own[load] if load in own else {k for known in own.values() for k in known}
    known = [math.log1p(k or 0) for k in row]
    of_length = 1.0 if length is None else _apart(math.log1p(length), known)
    return 0.0 if length in row else of_length, _apart(math.log(load), [math.log(c) for c in own])


def _apart(at: float, known: Collection[float]) -> float:
    """Return the distance of a number from known numbers.

    The distance is half the harmonic mean of the distances to the nearest known number on each
    side.
    """
    sides = [[x - at for x in known if x >= at], [at - x for x in known if x <= at]]
    return 1.0 / sum(1.0 / max(min(side), 1e-9) for side in sides if side) if known else 1.0
