"""Kernels that enumerate integer patterns.

They list either all patterns that fit in memory, or the patterns near the dual prices of a master
program.

Among the patterns that serve the same clients, only the most valuable pattern is kept. An item is
an option that a pattern near the prices may contain.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel, record
from specopt.solvers.placement.kernels.units import (
    is_full,
    limits,
    own_worth,
    rows_of,
    simplex,
    value,
)

DONE, PAUSED, FULL = range(3)
"""Status of an enumeration after a call.

DONE means that the enumeration is complete. PAUSED means that the next call continues it. FULL
means that it stopped because the storage is full.
"""

FOUND, SEEN, ITEM, ENTRIES = range(4)
"""Indices into the array `at`.

The entries are the number of patterns kept, the number of patterns seen, the next item to add, and
the number of entries of the current pattern.
"""

Kept = record(
    "Kept",
    chosen="i8[:, ::1]",
    counts="i8[:, ::1]",
    sizes="i8[::1]",
    values="f8[::1]",
    slots="i8[::1]",
    now="i8[:, ::1]",
    left="f8[::1]",
    at="i8[::1]",
)
"""Storage for the patterns found, and the state of the enumeration.

`slots` is a hash table of the patterns, whose size is a power of two. Each slot contains the index
of a row plus 1, or 0 if the slot is free. For a paused enumeration, `now` contains the items of the
last pattern and their numbers of clients, and `left` contains the remaining capacity of every row.
"""

Rules = record("Rules", objective="i8", slack="f8", until="i8", is_valued="b1")
"""Rules of an enumeration.

`slack` is the relative tolerance of memory and minimum rates. A call pauses after `until` patterns
have been seen. `is_valued` tells whether patterns are evaluated and kept, or only counted.
"""


@helper
def advance(table, kept):
    """Advance to the next pattern that satisfies all rows, and return whether it exists.

    `table` [k, r] is the coefficient of item k in row r. Clients are added one at a time, in
    nondecreasing order of items.
    """
    at, left, now = kept.at, kept.left, kept.now
    count, rows = table.shape
    while True:
        last, item = at[ENTRIES] - 1, at[ITEM]
        if item == count:
            if last < 0:
                return False
            item = now[0, last]
            now[1, last] -= 1
            if now[1, last] == 0:
                at[ENTRIES] = last
            for r in range(rows):
                left[r] += table[item, r]
            at[ITEM] = item + 1
            continue
        fits = True
        for r in range(rows):
            if table[item, r] > left[r]:
                fits = False
                break
        if not fits:
            at[ITEM] = item + 1
            continue
        if last < 0 or now[0, last] != item:
            last += 1
            now[0, last], now[1, last], at[ENTRIES] = item, 0, last + 1
        now[1, last] += 1
        for r in range(rows):
            left[r] -= table[item, r]
        at[SEEN] += 1
        return True


@helper
def served(options, option):
    """Return the class of an option, or a unique negative number if it uses a draft unit."""
    return options[option].cls if options[option].draft < 0 else -1 - option


@helper
def alike(options, chosen, counts, others, numbers):
    """Return whether two patterns serve the same clients with the same options on draft units."""
    left = 0
    for f in range(len(others)):
        left += numbers[f]
    for e in range(len(chosen)):
        which, spare = served(options, chosen[e]), 0
        left -= counts[e]
        for f in range(len(chosen)):
            if served(options, chosen[f]) == which:
                spare += counts[f]
        for f in range(len(others)):
            if served(options, others[f]) == which:
                spare -= numbers[f]
        if spare != 0:
            return False
    return left == 0


@helper
def mixed(number):
    """Return a hash of an integer."""
    found = (number + 3) * 0x5851F42D4C957F2D
    found ^= found >> 31
    return found * 0x2545F4914F6CDD1D


@helper
def keep(options, worth, chosen, counts, kept):
    """Store a pattern unless an equivalent pattern is at least as valuable.

    `worth` is the value of the pattern. Return False if the storage is full.
    """
    size, key = len(chosen), 0
    if size > kept.chosen.shape[1]:
        return False
    for e in range(size):
        key += counts[e] * mixed(served(options, chosen[e]))
    slot = (key >> 24) & (len(kept.slots) - 1)
    while kept.slots[slot] > 0:
        row = kept.slots[slot] - 1
        width = kept.sizes[row]
        if alike(options, chosen, counts, kept.chosen[row, :width], kept.counts[row, :width]):
            break
        slot = (slot + 1) & (len(kept.slots) - 1)
    if kept.slots[slot] == 0:
        if kept.at[FOUND] == len(kept.values):
            return False
        kept.at[FOUND] += 1
        kept.slots[slot] = kept.at[FOUND]
        kept.values[kept.slots[slot] - 1] = -np.inf
    row = kept.slots[slot] - 1
    if worth > kept.values[row]:
        kept.values[row], kept.sizes[row] = worth, size
        for e in range(size):
            kept.chosen[row, e], kept.counts[row, e] = chosen[e], counts[e]
    return True


@kernel(
    "i8(Unit, const Option[::1], const f8[::1], Rules, Sizes, const f8[::1], const f8[::1], Box,"
    " Kept)"
)
def near(unit, options, trips, rules, sizes, prices, clients, box, kept):
    """List every integer pattern in a box whose value, net of client prices, may reach a threshold.

    The threshold is a field of `sizes`. If it is -inf, all patterns that fit in memory are listed.
    Before the first call for a box, the item and the number of entries in `kept.at` must be 0.
    """
    count, width = len(options), rows_of(unit, sizes)
    worths, table, rhs = np.empty(count), np.empty((count, width)), np.empty(width)
    basis, levels, duals = np.empty(width, np.int64), np.empty(width), np.empty(width)
    losses = np.zeros(count)
    size = limits(unit, options, trips, rules.objective, clients, sizes, box, worths, table, rhs)
    if size < 0:
        return DONE
    spare = 1e300
    if sizes.threshold > -np.inf:
        for k in range(count):
            worths[k] -= prices[k]
        spare = simplex(worths, table[:, :size], rhs, size, basis, levels, duals)
        spare += own_worth(unit, rules.objective, box) - sizes.threshold
        if is_full(box):
            spare -= sizes.full
        for k in range(count):
            losses[k] = -worths[k]
            for r in range(size):
                losses[k] += table[k, r] * max(0.0, duals[r])
            losses[k] = max(0.0, losses[k])
    size -= rhs[size - 1] < 0.0
    able, found = np.empty(count, np.int64), 0
    held = np.empty((count, size + 1))
    for k in range(count):
        if losses[k] <= spare:
            able[found], held[found, size] = k, losses[k]
            for r in range(size):
                held[found, r] = table[k, r]
            found += 1
    held = held[:found]
    if kept.at[ENTRIES] == 0:
        kept.left[size] = spare
        for r in range(size):
            kept.left[r] = rhs[r] * (1.0 + 1e-9)
    items = np.empty(kept.now.shape[1], np.int64)
    while kept.at[SEEN] < rules.until:
        if not advance(held, kept):
            return DONE
        entries = kept.at[ENTRIES]
        for e in range(entries):
            items[e] = able[kept.now[0, e]]
        chosen, counts = items[:entries], kept.now[1, :entries]
        if rules.is_valued:
            worth = value(unit, options, trips, rules.objective, chosen, counts, rules.slack)
            spare = worth - sizes.threshold - min(0.0, sizes.full)
            for e in range(entries):
                spare -= counts[e] * prices[chosen[e]]
            if spare >= 0.0 and not keep(options, worth, chosen, counts, kept):
                return FULL
    return PAUSED
