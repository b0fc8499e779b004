"""Kernels that find good batches by greedy algorithms and exchanges, for one threshold at a time.

The problem is verification batching at one epoch (paper 2, Eq. 13-15). A threshold is the tightest
deadline of a batch. Once the threshold is fixed, a knapsack problem remains, with a time limit and
a memory limit. The time limit D is the time that the deadline leaves for the weights of the batch.
The items of the knapsack are the requests whose deadline is not earlier than the threshold.

Requests are sorted by decreasing time limit and are called items below. The items of every
threshold are then a prefix of all items, and longer prefixes have shorter time limits. In every
kernel, a batch whose weights sum to t satisfies the time limit if t <= D in floating point, because
the limits passed by the caller include all tolerances.
"""

import math

import numpy as np

from specopt.solvers.kernels.kernel import helper, inlined, kernel
from specopt.solvers.verification_batch.kernels.bound import (
    Items,  # noqa: F401  (named in a signature, and used by the callers)
    by_density,
    dual,
    fits,
    lagrangian,
    prices,
    ratio,
)

STARTS = 4
"""Number of thresholds whose batches `sweep` improves by exchanges."""

GRID = 4
"""Number of mixtures of time and memory by which `sweep` sorts items if memory may bind."""

MIXES = 5
"""Number of bisection steps with which `sweep` finds a mixture of the prices of time and memory."""

CORE = 10
"""Number of items with the smallest absolute reduced values whose subsets `sweep` enumerates."""

ROUNDS = 6
"""Maximum number of rounds of exchanges for a batch."""

GAIN = 1.0 + 1e-12
"""Minimum factor by which an exchange must appear to increase a value before it is tried."""


@helper
def copy(source, target):
    """Copy an array into another array of the same length.

    Numba compiles this loop much faster than the assignment of a slice.
    """
    for k in range(len(source)):
        target[k] = source[k]


@helper
def fill(items, order, end, D, skip, t, memory, keeps, taken):
    """Add items to a batch in the order given by `order`, and return the total value added.

    Only items below `end`, except `skip`, are considered, and items that do not fit are skipped.
    `t` and `memory` are the time and memory of the batch so far. `keeps` tells whether to mark the
    added items in `taken`, or only to compute their value.
    """
    gained = 0.0
    for i in order:
        if i < end and not taken[i] and i != skip and fits(items, i, t, memory, D):
            t += items.seconds[i]
            memory += items.memory[i]
            gained += items.value[i]
            if keeps:
                taken[i] = True
    return gained


@helper
def use(items, end, taken):
    """Return the value, time and memory of a batch, summed in the order of the items."""
    value, t, memory = 0.0, 0.0, 0.0
    for i in range(end):
        if taken[i]:
            value += items.value[i]
            t += items.seconds[i]
            memory += items.memory[i]
    return value, t, memory


@inlined
def admits(items, t, memory, D):
    """Return whether a batch with time `t` and memory `memory` satisfies the memory limit and the
    time limit D.
    """
    return memory <= items.memory_room and t <= D


@helper
def improve(items, order, end, D, stop, trial, taken):
    """Improve a batch by exchanges until no exchange increases its value, and return the value.

    An exchange either removes one item and adds another item or refills the batch, or it adds one
    item, removes the least dense items and refills the batch. `order` contains the items below
    `end`, sorted by decreasing density.
    """
    v, w, m = items.value, items.seconds, items.memory
    value, t, memory = use(items, end, taken)
    for _ in range(ROUNDS):
        before = value
        for turn in range(2 * end):
            if stop[0]:
                return value
            leaves = turn < end
            item = order[turn if leaves else turn - end]
            if taken[item] != leaves:
                continue
            chosen, at = item, end
            if leaves:  # remove one item, then refill, or add the most valuable item that fits
                hole_t, hole_memory = t - w[item], memory - m[item]
                best = v[item] * GAIN
                if not fill(items, order, end, D, item, hole_t, hole_memory, False, taken) > best:
                    for j in order[:end]:
                        if not taken[j] and v[j] > best and fits(items, j, hole_t, hole_memory, D):
                            best, chosen = v[j], j
                    if chosen == item:
                        continue
                    hole_t += w[chosen]
                    hole_memory += m[chosen]
            else:  # add one item, remove the least dense items, refill
                if w[item] > D:
                    continue
                hole_t, hole_memory, more = t + w[item], memory + m[item], value + v[item]
                while at > 0 and not admits(items, hole_t, hole_memory, D):
                    at -= 1
                    out = order[at]
                    if taken[out]:
                        hole_t -= w[out]
                        hole_memory -= m[out]
                        more -= v[out]
                if (
                    not more + fill(items, order, end, D, item, hole_t, hole_memory, False, taken)
                    > value * GAIN
                ):
                    continue
            copy(taken, trial)
            trial[item] = False
            for k in range(at, end):
                trial[order[k]] = False
            if not leaves or chosen != item:
                trial[chosen] = True
            skip = item if chosen == item else -1
            fill(items, order, end, D, skip, hole_t, hole_memory, True, trial)
            trial_value, trial_t, trial_memory = use(items, end, trial)
            if trial_value > value and admits(items, trial_t, trial_memory, D):
                copy(trial, taken)
                value, t, memory = trial_value, trial_t, trial_memory
        if value <= before:
            break
    return value


@helper
def enumerate_core(items, order, end, D, per_second, per_byte, core, taken):
    """Fill `taken` with a batch by enumerating a core at the prices, and return its value.

    Items with positive reduced value are chosen. The core consists of the `core` items with the
    smallest absolute reduced values, and its best subset is chosen instead. The batch is then
    refilled greedily. The value is negative if the chosen items outside the core do not fit.
    """
    v, w, m = items.value, items.seconds, items.memory
    nearest = np.empty(core + 1, np.int64)
    distance = np.empty(core + 1)
    size = 0
    for i in range(end):
        reduced = v[i] - per_second * w[i] - per_byte * m[i]
        fitting = w[i] <= D
        taken[i] = fitting and v[i] > per_second * w[i] + per_byte * m[i]
        if not fitting:
            continue
        k = size  # the items nearest to the price, sorted
        while k > 0 and distance[k - 1] > abs(reduced):
            distance[k], nearest[k] = distance[k - 1], nearest[k - 1]
            k -= 1
        distance[k], nearest[k] = abs(reduced), i
        size = min(size + 1, core)
    taken[end:] = False
    taken[nearest[:size]] = False
    value, t, memory = use(items, end, taken)
    if not admits(items, t, memory, D):
        return -1.0
    subsets = np.empty((3, 1 << size))
    values, times, sizes = subsets[0], subsets[1], subsets[2]
    values[0], times[0], sizes[0] = value, t, memory
    best, chosen = value, 0
    for k in range(size):
        i = nearest[k]
        for mask in range(1 << k):
            more = (1 << k) + mask
            values[more] = values[mask] + v[i]
            times[more] = times[mask] + w[i]
            sizes[more] = sizes[mask] + m[i]
            if values[more] > best and admits(items, times[more], sizes[more], D):
                best, chosen = values[more], more
    for k in range(size):
        if chosen >> k & 1:
            taken[nearest[k]] = True
    fill(items, order, end, D, -1, times[chosen], sizes[chosen], True, taken)
    return use(items, end, taken)[0]


@helper
def filled(items, order, end, D, taken):
    """Fill an empty batch greedily in the order given by `order`, and return its value."""
    taken[:] = False
    return fill(items, order, end, D, -1, 0.0, 0.0, True, taken)


@kernel("void(i8[::1], Items, b1[::1], u1[::1])")
def sweep(ends, items, best, stop):
    """Find a good batch by greedy algorithms and exchanges, and mark its items in `best`.

    All entries of `best` must initially be False. `ends` contains, for each distinct time
    limit, the number of items whose time limit is at least as large. The entry of `stop` becomes 1
    when the method's time is up. The result is then the best batch found so far.
    """
    size, thresholds, d = len(items.value), len(ends), items.room
    if size == 0:
        return
    binding = items.memory.sum() > items.memory_room
    flags = np.zeros((2, size), np.bool_)
    taken, trial = flags[0], flags[1]
    orders = np.empty((3, size), np.int64)
    by_time, by_memory, order = orders[0], orders[1], orders[2]
    by_density(items, size, 1.0, 0.0, by_time)
    by_density(items, size, 0.0, 1.0, by_memory)
    score = np.full(thresholds, -1.0)
    promise = np.full(thresholds, math.inf)  # bounds at the prices of the thresholds visited so far
    top = 0
    for mix in range(
        GRID + 2 if binding else 1
    ):  # value per second, per byte, and mixes of both, which help if both limits bind
        if mix == 0:
            copy(by_time, order)
        elif mix == 1:
            copy(by_memory, order)
        else:
            share = (mix - 1.0) / (GRID + 1.0)
            room = d[ends[top] - 1]
            per_second = (1.0 - share) * ratio(1.0, room) if room > 0.0 else 0.0
            by_density(items, size, per_second, share / max(items.memory_room, 1e-300), order)
        for j in range(thresholds):
            if stop[0]:
                break
            score[j] = max(
                score[j], fill(items, order, ends[j], d[ends[j] - 1], -1, 0.0, 0.0, False, best)
            )
        if mix <= 1:
            top = np.argmax(score)
    top = np.argmax(score)
    single = np.argmax(items.value)
    best[single] = True
    best_value = items.value[single]
    for k in range(2):  # the guarantee: at least the best greedy batch over all thresholds
        value = filled(items, by_time if k == 0 else by_memory, ends[top], d[ends[top] - 1], taken)
        if value > best_value:
            best_value = value
            copy(taken, best)
    for visit in range(min(STARTS, thresholds)):
        if stop[0]:
            break
        j = np.argmax(score) if visit % 2 == 0 else np.argmax(promise)
        score[j] = -1.0
        if promise[j] <= best_value:
            continue
        end, D = ends[j], d[ends[j] - 1]
        if binding:
            _, per_second, per_byte = dual(
                items, by_time, by_memory, 0, end, D, MIXES, -math.inf, order
            )
        else:
            per_second, per_byte, _ = prices(items, by_time, end, D, 1.0, 0.0)
        for k in range(thresholds):
            if promise[k] > best_value:
                start = ends[k - 1] if k > 0 else 0
                bound = lagrangian(items, start, ends[k], d[ends[k] - 1], per_second, per_byte)
                promise[k] = min(promise[k], bound)
        promise[j] = -1.0
        inside = order[:end]
        if binding and per_second + per_byte > 0.0:
            by_density(items, end, per_second, per_byte, inside)
        else:
            count = 0
            for item in by_time:
                if item < end:
                    inside[count] = item
                    count += 1
        value = enumerate_core(items, inside, end, D, per_second, per_byte, CORE, taken)
        for k in range(3 if binding else 1):
            other = inside if k == 0 else (by_time if k == 1 else by_memory)
            greedy = filled(items, other, end, D, trial)
            if greedy > value or (k == 0 and greedy == value):
                value = greedy
                copy(trial, taken)
        value = improve(items, inside, end, D, stop, trial, taken)
        if value > best_value:
            best_value = value
            copy(taken, best)


@kernel("f8(i8, i8, Items, f8, f8, f8, b1[::1], u1[::1])")
def polish(end, core, items, D, per_second, per_byte, taken, stop):
    """Fill `taken` with a good batch for a threshold, and return the batch's value.

    Given the threshold's prices, the best subset of a core is chosen, and the batch is improved by
    exchanges. The value is negative if the chosen items outside the core do not fit.
    """
    order = np.empty(end, np.int64)
    by_density(items, end, per_second, per_byte, order)
    value = enumerate_core(items, order, end, D, per_second, per_byte, core, taken)
    if value >= 0.0:
        value = improve(items, order, end, D, stop, np.empty(len(taken), np.bool_), taken)
    return value
