"""Lists of whole patterns of `placement`: all that memory holds, or those near the prices of a
master program. Of patterns with the same clients and draft units the most valuable one is kept.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel, record
from specopt.solvers.placement.kernels.units import (
    LATER,
    is_full,
    limits,
    middle,
    own_worth,
    reach,
    simplex,
    value,
)

DONE, PAUSED, FULL = range(3)
"""How a call ends: everything is listed, call again to go on, or there is no room for more."""

FOUND, SEEN, ITEM, ENTRIES, BOX, BOXES = range(6)
"""Columns of `at`: patterns that are kept, and seen; the next item to add and the entries of the
pattern at hand; the box at hand, and how many there are.
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
"""Patterns that are kept; a hash table of them (row + 1; 0: free), a power of two long; and where a
list has paused: items and clients of the pattern at hand, and what it leaves of every row.
"""

Rules = record("Rules", objective="i8", slack="f8", floor="f8", until="i8")
"""What is listed: patterns that are worth `floor` more than the prices of their clients; a call
pauses when `until` were seen.
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
def tally(options, meets, chosen, counts, which, draft):
    """Return the clients of a class, or of a type of draft units, and what of that type they
    meet.
    """
    total, met = 0, 0
    for e in range(len(chosen)):
        o = options[chosen[e]]
        if (o.draft if draft else o.cls) == which:
            total += counts[e]
            met |= meets[chosen[e]]
    return total, met


@helper
def alike(options, meets, chosen, counts, others, numbers):
    """Return whether two patterns serve the same clients and use the same draft units."""
    if counts.sum() != numbers.sum():
        return False
    for e in range(len(chosen)):
        o = options[chosen[e]]
        mine, _ = tally(options, meets, chosen, counts, o.cls, False)
        other, _ = tally(options, meets, others, numbers, o.cls, False)
        if mine != other or tally(options, meets, chosen, counts, o.draft, True) != tally(
            options, meets, others, numbers, o.draft, True
        ):
            return False
    return True


@helper
def mixed(number):
    """Return a number whose bits depend on all bits of another."""
    found = (number + 3) * 0x5851F42D4C957F2D
    found ^= found >> 31
    return found * 0x2545F4914F6CDD1D


@helper
def keep(options, meets, worth, chosen, counts, kept):
    """Keep a pattern if none that is alike is worth as much; return whether there is room."""
    size, key = len(chosen), 0
    if size > kept.chosen.shape[1]:
        return False
    for e in range(size):
        o = options[chosen[e]]
        key += counts[e] * (mixed(2 * o.cls) + mixed(2 * o.draft + 1))
    slot = (key >> 24) & (len(kept.slots) - 1)
    while kept.slots[slot] > 0:
        row = kept.slots[slot] - 1
        width = kept.sizes[row]
        if alike(
            options, meets, chosen, counts, kept.chosen[row, :width], kept.counts[row, :width]
        ):
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
        kept.chosen[row, :size], kept.counts[row, :size] = chosen, counts
    return True


@helper
def listed(unit, options, trips, rules, meets, prices, able, table, kept):
    """Keep the patterns of some items within rows; return how that ended."""
    while kept.at[SEEN] < rules.until:
        if not advance(table, kept):
            return DONE
        size = kept.at[ENTRIES]
        chosen, counts = able[kept.now[0, :size]], kept.now[1, :size].copy()
        worth = value(unit, options, trips, rules.objective, chosen, counts, rules.slack)
        spare = worth - rules.floor
        for e in range(size):
            spare -= counts[e] * prices[chosen[e]]
        if spare >= 0.0 and not keep(options, meets, worth, chosen, counts, kept):
            return FULL
    return PAUSED


@kernel("i8(Unit, const Option[::1], const f8[::1], Rules, const i8[::1], const f8[::1], b1, Kept)")
def every(unit, options, trips, rules, meets, clients, valued, kept):
    """List all patterns of one side that memory holds, or only count them.

    clients: most of every class on a unit. `kept.at` is 0 at the first call.
    """
    count, classes = len(options), len(clients)
    table = np.zeros((count, 1 + classes))
    table[:, 0] = unit.kv * options["memory"]
    for k in range(count):
        table[k, 1 + options[k].cls] = 1.0
    if kept.at[SEEN] == 0:
        kept.left[0], kept.left[1 : 1 + classes] = unit.room + 1e-9 * abs(unit.room), clients
    if valued:
        prices, able = np.zeros(count), np.arange(count)
        return listed(unit, options, trips, rules, meets, prices, able, table, kept)
    while kept.at[SEEN] < rules.until:
        if not advance(table, kept):
            return DONE
    return PAUSED


@kernel(
    "i8(Unit, const Option[::1], const f8[::1], Rules, const i8[::1], Sizes, const f8[::1], const"
    " f8[::1], Box[::1], Kept)"
)
def near(unit, options, trips, rules, meets, sizes, prices, clients, boxes, kept):
    """List every whole pattern of one side that may be worth more than a threshold at prices of
    its clients.

    boxes: as in `search`; `kept.at` has their number.
    """
    rows = len(unit.passes) * max(len(unit.beside), 1 + len(LATER))
    count, width = len(options), 3 + rows + sizes.classes
    worths, shares, sums = np.empty(count), np.empty(count), np.empty((2, count))
    table, rhs, duals = np.empty((count, width)), np.empty(width), np.empty(width)
    basis, levels, losses = np.empty(width, np.int64), np.empty(width), np.empty(count)
    at = kept.at
    while at[BOX] < at[BOXES]:
        box = boxes[at[BOX]]
        reach(unit, options, trips, rules.objective, sizes, box, worths, shares, sums)
        size = limits(unit, options, trips, clients, sizes, box, shares, sums, table, rhs)
        spare = -1.0
        if size > 0:
            worths -= prices
            spare = simplex(worths, table[:, :size], rhs, size, basis, levels, duals)
            spare += own_worth(unit, rules.objective, box) - sizes.threshold
            if is_full(box):
                spare -= sizes.full
        if not spare >= 0.0:
            at[BOX] += 1
            continue
        split, loads = middle(box, sizes)
        if split > 0.0 and at[BOXES] + 1 < len(boxes):
            boxes[at[BOXES]] = boxes[at[BOXES] + 1] = box
            if loads:
                boxes[at[BOXES]].load_high = boxes[at[BOXES] + 1].load_low = split
            else:
                boxes[at[BOXES]].high = boxes[at[BOXES] + 1].low = split
            at[BOXES] += 2
            at[BOX] += 1
            continue
        for k in range(count):
            losses[k] = -worths[k]
            for r in range(size):
                losses[k] += table[k, r] * max(0.0, duals[r])
            losses[k] = max(0.0, losses[k])
        able = np.flatnonzero(losses <= spare)
        size -= rhs[size - 1] < 0.0
        held = np.empty((len(able), size + 1))
        held[:, :size], held[:, size] = table[able, :size], losses[able]
        if at[ENTRIES] == 0:
            kept.left[:size], kept.left[size] = rhs[:size] * (1.0 + 1e-9), spare
        end = listed(unit, options, trips, rules, meets, prices, able, held, kept)
        if end != DONE:
            return end
        at[ITEM] = 0
        at[BOX] += 1
    return DONE
