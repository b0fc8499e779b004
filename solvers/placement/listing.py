"""Enumeration of integer patterns with compiled kernels.

Among the patterns that serve the same clients, only the most valuable pattern is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from specopt.models.fields import Floats
from specopt.solvers.placement.boxes import covers
from specopt.solvers.placement.patterns import SLACK, Pattern, most_clients, undominated
from specopt.solvers.placement.prepare import Prepared

MAX_KEPT, MAX_ENTRIES = 2**15, 64
"""Limits on stored patterns: their number per side, and the number of entries per pattern.

If a side exceeds either limit, the enumeration stops without a result.
"""

CHUNK = 10_000
"""Number of patterns to evaluate between two checks of the clock.

If patterns are only counted, this number is 100 times as large.
"""

SECONDS_PER_PATTERN, SECONDS_PER_BOX = 4e-7, 2e-5
"""Work of evaluating a pattern, and of preparing a box or resuming it, in seconds.

Finding the next pattern takes a thousandth of the work of evaluating it for each option. If the
constants are smaller, a solve without a time limit takes longer.
"""


Task = tuple[int, Any, Floats, Any]
"""One task of an enumeration: the index of a side, parameters of the search, the prices of the
options, and the boxes to search.
"""


def listed(
    prepared: Prepared,
    most: int,
    clients: Sequence[int],
    tasks: Iterable[Task],
    is_valued: bool = True,
) -> list[Pattern] | None:
    """Return the patterns in the boxes of some sides, or None if there are more than `most`.

    `clients` is the maximum number of clients per unit, by class. If `is_valued` is False, patterns
    are only counted, and the list is empty.
    """
    kernels, limits = prepared.budget.load("placement.listing"), np.array(clients, np.float64)
    left, found = most, list[Pattern]()
    for index, sizes, prices, boxes in tasks:
        side = prepared.sides[index]
        options, rows = len(side.options), kernels.rows_of(side.unit, sizes)
        entries = max(1, min(options, sum(clients), MAX_ENTRIES))
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
                until = before + min(chunk * CHUNK, left + 1)
                rules = kernels.Rules(prepared.objective, SLACK, until, is_valued)
                of = side.unit, side.options, prepared.trips
                end = kernels.near(*of, rules, sizes, prices, limits, box, kept)
                seen = int(at[kernels.SEEN]) - before
                work = SECONDS_PER_PATTERN * seen * (is_valued + options / 1000)
                prepared.budget.spend(SECONDS_PER_BOX + work)
                left -= seen
                if end == kernels.FULL or left < 0:
                    return None
        for k in range(int(at[kernels.FOUND])):
            size = int(kept.sizes[k])
            chosen, counts = kept.chosen[k, :size].tolist(), kept.counts[k, :size].tolist()
            held = tuple(zip(chosen, counts, strict=True))
            found.append(Pattern(index, held, float(kept.values[k])))
    return found


def every(prepared: Prepared, most: int) -> list[Pattern] | None:
    """Return all patterns that fit in memory, or None if there are more than `most`.

    Among the patterns that agree in verifier, clients and draft units, only the most valuable
    pattern is returned.
    """
    clients, tasks = most_clients(prepared), list[Task]()
    for cover in covers(prepared):
        box = np.array([(True, cover.floor, 1e300, 0.0, 0.0)], cover.boxes.dtype)
        prices = np.zeros(len(prepared.sides[cover.side].options))
        own = cover.base, cover.floor, 0.0, -np.inf, 0.0, len(clients)
        tasks.append((cover.side, prepared.kernels.Sizes(*own), prices, box))
    if listed(prepared, most, clients, tasks, is_valued=False) is None:
        return None
    found = listed(prepared, most, clients, tasks)
    return None if found is None else undominated(prepared, found)
