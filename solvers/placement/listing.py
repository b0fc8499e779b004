"""Lists of whole patterns, made by kernels: of those with the same verifier, clients of every class
and draft units the most valuable one is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.solvers.placement.patterns import SLACK, Pattern, most_clients, undominated
from specopt.solvers.placement.prepare import Prepared

MAX_KEPT, MAX_ENTRIES = 2**15, 64
"""Maximum number of patterns of one side that are kept, and of their entries; with more the list is
given up.
"""

CHUNK = 10_000
"""Patterns that are valued between two looks at the clock; many more are only counted."""

SECONDS_PER_PATTERN = 3e-6
"""Work of valuing a pattern; to count it takes a hundredth."""


class Lister:
    """Lists patterns of all sides, until it has seen too many.

    Parameters
    ----------
    prepared
        The problem.
    most
        Maximum number of patterns that are seen.
    """

    def __init__(self, prepared: Prepared, most: int) -> None:
        self.prepared = prepared
        self.left = most
        self.kernels = prepared.budget.load("placement.listing")
        self.most_clients = np.array(most_clients(prepared), np.float64)

    def every(self) -> list[Pattern] | None:
        """Return all patterns that memory holds; None if there are too many."""
        most, found = self.left, list[Pattern]()
        for is_valued in (False, True):
            self.left = most
            for index in range(len(self.prepared.sides)):
                kept = self._kept(index, 1 + len(self.most_clients))
                own = self.most_clients, is_valued
                chunk = 1 if is_valued else 100
                listed = self._listed(index, self.kernels.every, own, kept, -np.inf, chunk)
                if listed is None:
                    return None
                found += listed
        return undominated(self.prepared, found)

    def near(
        self, index: int, sizes: Any, prices: Floats, boxes: Any, width: int
    ) -> list[Pattern] | None:
        """Return the patterns of one side that may be worth more than a threshold at prices of
        their clients; None if there are too many.
        """
        kept = self._kept(index, width + 1)
        kept.at[self.kernels.BOXES] = np.count_nonzero(boxes["low"] >= 0.0)
        own = sizes, prices, np.array(self.prepared.clients, np.float64), boxes
        floor = sizes.threshold + min(0.0, sizes.full)
        return self._listed(index, self.kernels.near, own, kept, floor)

    def _listed(
        self, index: int, kernel: Any, own: tuple[Any, ...], kept: Any, floor: float, chunk: int = 1
    ) -> list[Pattern] | None:
        """Call a kernel until it has listed all patterns of a side; None if there are too many.

        floor: minimum value of a pattern, less the prices of its clients.
        """
        prepared, kernels, at = self.prepared, self.kernels, kept.at
        side, meets, end = prepared.sides[index], self._meets(index), kernels.PAUSED
        while end == kernels.PAUSED:
            prepared.budget.check()
            before = int(at[kernels.SEEN])
            until = before + min(chunk * CHUNK, self.left + 1)
            rules = kernels.Rules(prepared.objective, SLACK, floor, until)
            end = kernel(side.unit, side.options, prepared.trips, rules, meets, *own, kept)
            seen = int(at[kernels.SEEN]) - before
            prepared.budget.spend(SECONDS_PER_PATTERN * seen / chunk)
            self.left -= seen
            if end == kernels.FULL or self.left < 0:
                return None
        found = []
        for k in range(int(at[kernels.FOUND])):
            size = int(kept.sizes[k])
            chosen, counts = kept.chosen[k, :size].tolist(), kept.counts[k, :size].tolist()
            found.append(
                Pattern(index, tuple(zip(chosen, counts, strict=True)), float(kept.values[k]))
            )
        return found

    def _kept(self, index: int, rows: int) -> Any:
        """Return room for the patterns of a side."""
        options = len(self.prepared.sides[index].options)
        width = max(1, min(options, int(self.most_clients.sum()), MAX_ENTRIES))
        return self.kernels.Kept(
            *np.zeros((2, MAX_KEPT, width), np.int64),
            np.zeros(MAX_KEPT, np.int64),
            np.zeros(MAX_KEPT),
            np.zeros(4 << MAX_KEPT.bit_length(), np.int64),
            np.zeros((2, options), np.int64),
            np.zeros(rows),
            np.zeros(6, np.int64),
        )

    def _meets(self, index: int) -> Ints:
        """Return what every option meets of its type of draft units: 1 for the largest context, and
        2 for the largest length.
        """
        prepared, found = self.prepared, []
        for way in prepared.sides[index].ways:
            met = 0
            if way.draft >= 0:
                of = prepared.drafts[way.draft]
                met = int(prepared.problem.classes[way.cls].context_tokens == of.context)
                met += 2 * int(of.length in (None, way.length))
            found.append(met)
        return np.array(found, np.int64)
