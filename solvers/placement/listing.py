"""Enumeration of integer patterns by kernels.

Among the patterns that serve the same clients, only the most valuable pattern is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from specopt.models.fields import Floats
from specopt.solvers.placement.boxes import covers, width
from specopt.solvers.placement.patterns import SLACK, Pattern, most_clients, undominated
from specopt.solvers.placement.prepare import Prepared

MAX_KEPT, MAX_ENTRIES = 2**15, 64
"""Maximum number of stored patterns per side, and maximum number of entries per pattern.

If a side exceeds either limit, the enumeration stops without a result.
"""

CHUNK = 10_000
"""Number of patterns to evaluate between two checks of the clock.

If patterns are only counted, this number is 100 times as large.
"""

SECONDS_PER_PATTERN = 3e-6
"""Work of evaluating a pattern, in seconds; counting a pattern takes a hundredth of this work."""


class Lister:
    """Enumerates the patterns of one side at a time, up to a maximum number in total.

    Parameters
    ----------
    prepared
        Arrays of the problem.
    most
        Maximum number of patterns to enumerate.
    """

    def __init__(self, prepared: Prepared, most: int) -> None:
        self.prepared = prepared
        self.left = most
        self.kernels = prepared.budget.load("placement.listing")

    def listed(
        self,
        index: int,
        sizes: Any,
        prices: Floats,
        clients: Floats,
        boxes: Any,
        is_valued: bool = True,
    ) -> list[Pattern] | None:
        """Return the patterns of the given boxes of a side; None if there are too many.

        If `is_valued` is False, patterns are only counted, and the list is empty.
        """
        prepared, kernels, side = self.prepared, self.kernels, self.prepared.sides[index]
        options, rows = len(side.options), 1 + width(prepared, sizes.classes)
        entries = max(1, min(options, int(clients.sum()), MAX_ENTRIES))
        kept = kernels.Kept(
            *np.zeros((2, MAX_KEPT, entries), np.int64),
            np.zeros(MAX_KEPT, np.int64),
            np.zeros(MAX_KEPT),
            np.zeros(4 << MAX_KEPT.bit_length(), np.int64),
            np.zeros((2, options), np.int64),
            np.zeros(rows),
            np.zeros(4, np.int64),
        )
        at, chunk = kept.at, 1 if is_valued else 100
        for box in boxes:
            at[kernels.ITEM], end = 0, kernels.PAUSED
            while end == kernels.PAUSED:
                prepared.budget.check()
                before = int(at[kernels.SEEN])
                until = before + min(chunk * CHUNK, self.left + 1)
                rules = kernels.Rules(prepared.objective, SLACK, until, is_valued)
                of = side.unit, side.options, prepared.trips
                end = kernels.near(*of, rules, sizes, prices, clients, box, kept)
                seen = int(at[kernels.SEEN]) - before
                prepared.budget.spend(SECONDS_PER_PATTERN * seen / chunk)
                self.left -= seen
                if end == kernels.FULL or self.left < 0:
                    return None
        found = []
        for k in range(int(at[kernels.FOUND])):
            size = int(kept.sizes[k])
            chosen, counts = kept.chosen[k, :size].tolist(), kept.counts[k, :size].tolist()
            held = tuple(zip(chosen, counts, strict=True))
            found.append(Pattern(index, held, float(kept.values[k])))
        return found


def every(prepared: Prepared, most: int) -> list[Pattern] | None:
    """Return all patterns that fit in memory; None if there are more than `most`.

    Among the patterns that agree in verifier, clients and draft units, only the most valuable
    pattern is returned.
    """
    clients, found = np.array(most_clients(prepared), np.float64), list[Pattern]()
    for is_valued in (False, True):
        lister = Lister(prepared, most)
        for cover in covers(prepared):
            own = cover.base, cover.floor, 0.0, -np.inf, 0.0, len(clients)
            box = np.array([(True, cover.floor, 1e300, 0.0, 0.0)], cover.boxes.dtype)
            prices = np.zeros(len(prepared.sides[cover.side].options))
            sizes = prepared.kernels.Sizes(*own)
            listed = lister.listed(cover.side, sizes, prices, clients, box, is_valued)
            if listed is None:
                return None
            found += listed
    return undominated(prepared, found)
