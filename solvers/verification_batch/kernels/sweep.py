"""Verification batching (paper 2, Eq. 13-15 at one epoch): greedy batches and exchanges, threshold
by threshold.

Fix the tightest deadline that a batch admits: what is left is a knapsack in the room D that it
leaves for the weights, and in memory, over the requests that are due no earlier. With requests
sorted by decreasing room ("items" below) those of every threshold are a prefix, and the room
shrinks as the prefix grows. A batch of weights summing to t fits the threshold if t <= D, in
floating point, in every kernel: the caller's rooms bear all tolerance.
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
"""Thresholds from which `sweep` starts exchanges."""

GRID = 4
"""Mixes of time and memory at which `sweep` is greedy, where memory may bind."""

MIXES = 5
"""Bisections of the mix of time and memory in `sweep`."""

CORE = 10
"""Items next to the price that `sweep` enumerates."""

ROUNDS = 6
"""Most rounds of exchanges."""

GAIN = 1.0 + 1e-12
"""By which factor an exchange must at least seem to gain."""


@helper
def copy(source, target):
    """Copy an array into another one of the same length.

    Numba compiles this loop much faster than the assignment of a slice.
    """
    for k in range(len(source)):
        target[k] = source[k]


@helper
def fill(items, order, end, D, skip, t, memory, keeps, taken):
    """Add items below `end`, but not `skip`, in the given order to what is taken; return what they
    are worth.

    t, memory: of what is taken. Items that do not fit are left out. keeps: whether to take them, or
    to count only.
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
    """Return value, time and memory of what is taken, summed in order."""
    value, t, memory = 0.0, 0.0, 0.0
    for i in range(end):
        if taken[i]:
            value += items.value[i]
            t += items.seconds[i]
            memory += items.memory[i]
    return value, t, memory


@inlined
def admits(items, t, memory, D):
    """Return whether a batch of some time and memory is within a threshold."""
    return memory <= items.memory_room and t <= D


@helper
def improve(items, order, end, D, stop, trial, taken):
    """Exchange until nothing gains: one for one or two, and one in for the least dense, then
    refill; return the value.

    order: the items below `end` by decreasing density.
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
            if leaves:  # out with one, refill with others, or in with the most valuable that fits
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
            else:  # in with one, out with the least dense, refill
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
    """Take what pays at given prices, and of the items next to the price the best subset; refill;
    return the value.

    The value is negative if what pays without the core does not fit.
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
    """Take what fits in an order, and nothing else; return its value."""
    taken[:] = False
    return fill(items, order, end, D, -1, 0.0, 0.0, True, taken)


@kernel("void(i8[::1], Items, b1[::1], u1[::1])")
def sweep(ends, items, best, stop):
    """Mark a batch in `best`, which marks nothing at first.

    ends: for each distinct room, the number of items that have no less. stop: its entry turns 1
    when the caller has no more time; the best batch found so far is then the result.
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
    ):  # value per second, per byte, and mixes: they tell where both bind
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
    for k in range(2):  # the guarantee: never less than the best greedy of all thresholds
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
            _, per_second, per_byte = dual(items, by_time, 0, end, D, MIXES, order)
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
    """Fill `taken` with a batch of a threshold by its prices: the best subset of a core, exchanges;
    return its value.

    The value is negative if what pays without the core does not fit.
    """
    order = np.empty(end, np.int64)
    by_density(items, end, per_second, per_byte, order)
    value = enumerate_core(items, order, end, D, per_second, per_byte, core, taken)
    if value >= 0.0:
        value = improve(items, order, end, D, stop, np.empty(len(taken), np.bool_), taken)
    return value
