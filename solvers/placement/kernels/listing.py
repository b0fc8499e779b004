"""Lists of whole patterns of `placement`: all that memory holds, or those near the prices of a
master program. Of patterns that serve the same clients the most valuable one is kept.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel, record
from specopt.solvers.placement.kernels.units import (
    LATER,
    is_full,
    limits,
    own_worth,
    simplex,
    value,
)

DONE, PAUSED, FULL = range(3)
"""How a call ends: everything is listed, call again to go on, or there is no room for more."""

FOUND, SEEN, ITEM, ENTRIES = range(4)
"""Columns of `at`: patterns that are kept, and seen; the next item to add and the entries of the
pattern at hand.
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
"""Patterns that are kept, and a hash table of them (row + 1; 0: free), a power of two long.

For a list that has paused: items and clients of its last pattern, and the rest of every row.
"""

Rules = record("Rules", objective="i8", slack="f8", until="i8", is_valued="b1")
"""What is listed: relative slack of memory and least rates, patterns that are seen before a call
pauses, and whether they are valued and kept, or only counted.
"""


@helper
def advance(table, kept):
    """Go on to the next pattern whose clients the rows have room for; return whether there is one.

    Its clients are added one by one, of items that never fall.
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
    """Return the number of an option's class; one of its own, below 0, if it drafts in a pool."""
    return options[option].cls if options[option].draft < 0 else -1 - option


@helper
def alike(options, chosen, counts, others, numbers):
    """Return whether two patterns serve the same clients, those of pools in the same way."""
    if counts.sum() != numbers.sum():
        return False
    for e in range(len(chosen)):
        which, spare = served(options, chosen[e]), 0
        for f in range(len(chosen)):
            if served(options, chosen[f]) == which:
                spare += counts[f]
        for f in range(len(others)):
            if served(options, others[f]) == which:
                spare -= numbers[f]
        if spare != 0:
            return False
    return True


@helper
def mixed(number):
    """Return a number whose bits depend on all bits of another."""
    found = (number + 3) * 0x5851F42D4C957F2D
    found ^= found >> 31
    return found * 0x2545F4914F6CDD1D


@helper
def keep(options, worth, chosen, counts, kept):
    """Keep a pattern if none that is alike is worth as much; return whether there is room."""
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
    """List every whole pattern of a box that may be worth more than a threshold at prices of its
    clients.

    A threshold of -inf lists all that memory holds. `kept.at` has 0 items and entries at the first
    call for a box.
    """
    rows = len(unit.passes) * max(len(unit.beside), 1 + len(LATER))
    count, width = len(options), 3 + rows + sizes.classes
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
