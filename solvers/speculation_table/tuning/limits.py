"""Upper bounds on the speed-up from drafts, derived from the mean number of tokens per step.

A step accepts at most as many tokens as it drafts, and drafting never shortens a step. Therefore,
the speed-up at a place (a workload with a context) and a load is at most the acceptance length,
which is the mean number of tokens per step. If a drafter drafts one token at a time, the acceptance
length is a nondecreasing and concave function of the draft length. Beyond the longest measured
length, the slope of the function is at most its average slope up to that length.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from specopt.models.sweep import Point
from specopt.solvers.speculation_table.tuning.law import Place, place_of

SUSPECT = 1.05
"""Maximum plausible ratio of a measured speed-up to the bound from its acceptance length.

A larger ratio indicates that the run without speculation was too slow. The bounds at that load are
then multiplied by the ratio.
"""


def most_tokens(draft_length: int, known: Mapping[int, float], sequential: bool) -> float:
    """Return an upper bound on the acceptance length, given measured acceptance lengths.

    Parameters
    ----------
    draft_length
        Number of drafts in the step.
    known
        Measured acceptance lengths by draft length, at the same place and load.
    sequential
        Whether drafts are made one token at a time, each based on the preceding drafts.
    """
    if draft_length in known:
        return known[draft_length]
    most = draft_length + 1.0
    if not known or not sequential:
        return most
    lengths = sorted({0, *known})
    tokens = [1.0, *(known[k] for k in lengths[1:])]
    if draft_length > lengths[-1]:
        return min(most, tokens[-1] + (draft_length - lengths[-1]) * (tokens[-1] - 1) / lengths[-1])
    after = int(np.searchsorted(lengths, draft_length))
    most = min(most, tokens[after])
    for a, b in ((after - 2, after - 1), (after, after + 1)):  # extend the chords on both sides
        if a >= 0 and b < len(lengths):
            slope = (tokens[b] - tokens[a]) / (lengths[b] - lengths[a])
            most = min(most, tokens[a] + slope * (draft_length - lengths[a]))
    # Because of noise, the measured lengths may not be concave.
    return max(most, float(np.interp(draft_length, lengths, tokens)))


class Limits:
    """Upper bounds on speed-ups, derived from measurements.

    Parameters
    ----------
    speeds
        Logarithms of the per-request throughput at the measured points.
    lengths
        Acceptance lengths at the measured points.
    sequential
        Whether drafts are made one token at a time, each based on the preceding drafts.
    """

    def __init__(
        self, speeds: Mapping[Point, float], lengths: Mapping[Point, float], sequential: bool
    ) -> None:
        self.sequential = sequential
        self._known: dict[Place, dict[float, dict[int, float]]] = defaultdict(dict)
        for point in speeds:
            if point.draft_length is None:
                self._known[place_of(point)][math.log(point.condition.concurrency)] = {}
        for point, length in lengths.items():
            row = self._known[place_of(point)].get(math.log(point.condition.concurrency))
            if row is not None:
                row[point.draft_length or 0] = length
        self._factors: dict[tuple[Place, float], float] = defaultdict(lambda: 1.0)
        suspects = []
        for point, speed in speeds.items():
            base = speeds.get(Point(point.condition, None))
            if base is not None and point.draft_length:
                place, load = place_of(point), math.log(point.condition.concurrency)
                ratio = math.exp(speed - base - self._log_tokens(place, load, point.draft_length))
                if ratio > SUSPECT:
                    self._factors[place, load] = max(ratio, self._factors[place, load])
                    suspects.append((ratio, point))
        self.notes = [_note(*max(suspects, key=lambda one: one[0]))] if suspects else []

    def log_speedup(self, point: Point) -> float:
        """Return an upper bound on the log speed-up at a point, or infinity if no bound is known.

        The bound is interpolated linearly in the logarithm of the load, and is constant beyond the
        measured loads.
        """
        place, drafts = place_of(point), point.draft_length
        if drafts is None:
            return 0.0
        loads = sorted(self._known[place])
        most = [
            self._log_tokens(place, load, drafts) + math.log(self._factors[place, load])
            for load in loads
        ]
        here = math.log(point.condition.concurrency)
        return float(np.interp(here, loads, most)) if loads else math.inf

    def _log_tokens(self, place: Place, load: float, drafts: int) -> float:
        return math.log(most_tokens(drafts, self._known[place][load], self.sequential))


def _note(ratio: float, point: Point) -> str:
    at = point.condition
    where = f", workload {at.workload}" if at.workload else ""
    where += f", {at.context_tokens:,} tokens of context" if at.context_tokens else ""
    return (
        f"at {at.concurrency} requests{where}, the speed-up of {point.draft_length} drafts is"
        f" {ratio:.2f} times what their acceptance length allows; measure no speculation again,"
        " because predictions there may be too high by the same factor"
    )
