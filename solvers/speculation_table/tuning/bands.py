"""How far the law misses: bands from measurements that it was fitted without.

The law is fitted again without each draft length, without each load, and without what a row has (a
place at a load) and the row in question lacks. A miss is divided by the root of the distance to
what was left, as a random walk between known points would have it. A band is a quantile of these
and of `MISSES` together, so that a table with few measurements has bands like other tables.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import numpy as np

from specopt.models.sweep import Point
from specopt.solvers.speculation_table.tuning.law import Law, Place, place_of

MISSES: Mapping[str, tuple[float, ...]] = {
    "length": (0.014, 0.046, 0.078, 0.11, 0.17, 0.23, 0.28, 0.37, 0.54, 1.0),
    "end": (0.03, 0.083, 0.14, 0.18, 0.22, 0.29, 0.36, 0.43, 0.64, 1.411),
    "load": (0.017, 0.038, 0.092, 0.12, 0.14, 0.18, 0.21, 0.24, 0.28, 0.39),
    "gain": (0.017, 0.032, 0.033, 0.045, 0.051, 0.086, 0.12, 0.17, 0.19, 0.47),
    "row": (0.006, 0.019, 0.033, 0.047, 0.072, 0.097, 0.13, 0.18, 0.27, 0.46),
}
"""What the law missed in measured tables, in equal steps of the share that missed no more:
"length", a draft length that was measured nowhere; "load", throughput at a load that was measured
nowhere; "gain", its speed-up; "row", a draft length that was measured in other rows only.
`benchmarks/tuning_rules.py` prints them."""

_OWN = 3  # times that a miss of the table itself counts
_MOST_REFITS = 24  # for misses of one kind


class Bands:
    """Half widths of bands, in log throughput.

    Parameters
    ----------
    speeds
        Log throughput of a request at the measured points.
    lengths
        Measured acceptance lengths.
    """

    def __init__(self, speeds: Mapping[Point, float], lengths: Mapping[Point, float]) -> None:
        self.speeds, self.lengths = speeds, lengths
        self._rows: dict[tuple[Place, int], set[int | None]] = defaultdict(set)
        for point in speeds:
            self._rows[place_of(point), point.condition.concurrency].add(point.draft_length)
        self._drafts = {point.draft_length for point in speeds}
        self._misses: dict[tuple[str, frozenset[int | None]], list[float]] = {}

    def at(self, point: Point, confidence: float) -> tuple[float, float]:
        """Return the half widths of the band of a point's log throughput, and of its log speed-up
        as far as that is less sure than no speculation at the load is.
        """
        place, load, length = place_of(point), point.condition.concurrency, point.draft_length
        loads = [math.log(c) for at, c in self._rows if at == place]
        row = self._rows.get((place, load)) or {
            k for (at, _), own in self._rows.items() if at == place for k in own
        }
        known = [k for k in self._drafts if k]
        kind = "length" if min(known) < (length or 0) < max(known) else "end"
        kind = "row" if length in self._drafts else kind
        of_length = 0.0
        if length not in row:
            of_length = _distance(length, row) * self._width(kind, frozenset(row), confidence)
        new = _apart(math.log(load), loads)
        speed, gain = (
            new * self._width(kind, frozenset(), confidence) if new else 0.0
            for kind in ("load", "gain")
        )
        return math.hypot(of_length, speed), math.hypot(of_length, gain)

    def misses(self, kind: str, row: Collection[int | None] = ()) -> list[float]:
        """Return the misses of this table, of a kind; `row`: draft lengths of the row in
        question.
        """
        found = []
        for hidden in list(self._hidden(kind, row))[:_MOST_REFITS]:
            kept = {point: speed for point, speed in self.speeds.items() if point not in hidden}
            places = {place_of(point) for point in kept}
            hidden = [point for point in hidden if place_of(point) in places]
            if not any(point.draft_length for point in kept) or not hidden:
                continue
            lengths = {point: own for point, own in self.lengths.items() if point in kept}
            law = Law(kept, lengths)
            missed = dict(
                zip(hidden, law.at(hidden) - [self.speeds[p] for p in hidden], strict=True)
            )
            for point, miss in missed.items():
                near = [p for p in kept if place_of(p) == place_of(point)]
                if kind not in ("load", "gain"):
                    near = [p for p in near if p.condition == point.condition] or near
                    far = _distance(point.draft_length, {p.draft_length for p in near})
                else:
                    loads = [math.log(p.condition.concurrency) for p in near]
                    far = _apart(math.log(point.condition.concurrency), loads)
                base = missed.get(Point(point.condition, None))
                if kind == "gain":
                    if base is None or point.draft_length is None:
                        continue
                    miss -= base
                if far > 0.0:
                    found.append(abs(float(miss)) / far)
        return found

    def _hidden(self, kind: str, row: Collection[int | None]) -> Iterator[list[Point]]:
        """Yield the points that are left out together."""
        if kind == "row":
            for place, load in self._rows:
                yield [
                    p
                    for p in self.speeds
                    if (place_of(p), p.condition.concurrency) == (place, load)
                    and p.draft_length not in row
                ]
            return
        if kind in ("length", "end"):
            lengths = sorted(length for length in self._drafts if length)
            for length in lengths[1:-1] if kind == "length" else {lengths[0], lengths[-1]}:
                yield [p for p in self.speeds if p.draft_length == length]
            return
        for load in sorted({p.condition.concurrency for p in self.speeds})[1:-1]:
            yield [p for p in self.speeds if p.condition.concurrency == load]

    def _width(self, kind: str, row: frozenset[int | None], confidence: float) -> float:
        if (kind, row) not in self._misses:
            self._misses[kind, row] = [*self.misses(kind, row) * _OWN, *MISSES[kind]]
        return float(np.quantile(self._misses[kind, row], confidence))


def _distance(length: int | None, known: Collection[int | None]) -> float:
    """Return how far a draft length is from known ones, as the variance of a random walk over
    log(1 + K) would grow; no speculation counts as 0 drafts.
    """
    at = [math.log1p(k or 0) for k in known]
    return 1.0 if length is None else _apart(math.log1p(length), at)


def _apart(at: float, known: Collection[float]) -> float:
    below = min((at - x for x in known if x <= at), default=math.inf)
    above = min((x - at for x in known if x >= at), default=math.inf)
    if math.isinf(below + above):
        return min(below, above, 1.0 if not known else math.inf)
    return below * above / (below + above) if below + above else 0.0
