"""Kernels that compute Lagrangian upper bounds on the values of batches.

There is a bound for every threshold, which is the tightest deadline of a batch. The bounds follow
from prices of time and memory.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper, inlined, kernel, record
from specopt.solvers.kernels.sorting import sort_by

DIGIT = 2.3e-16
"""Relative rounding error that is assumed for each term of a sum.

It slightly exceeds the error of two roundings. Each bound is raised by the rounding error of its
sum.
"""

Items = record(
    "Items",
    value="f8[::1]",  # by decreasing room
    seconds="f8[::1]",
    memory="f8[::1]",
    room="f8[::1]",  # limit on the total seconds of a batch, without its overhead
    memory_room="f8",  # limit on the total memory of a batch
)


@inlined
def ratio(value, cost):
    """Return value / cost, or infinity if the cost is zero."""
    return value / cost if cost > 0.0 else np.inf


@inlined
def fits(items, i, t, memory, D):
    """Return whether an item fits in addition to the time and memory that are already used.

    D is the limit on the total time.
    """
    return memory + items.memory[i] <= items.memory_room and t + items.seconds[i] <= D


@helper
def by_density(items, end, per_second, per_byte, order):
    """Fill `order` with the items below `end`, sorted by decreasing value per priced cost.

    Ties keep their original order.
    """
    key = np.empty(end)
    for i in range(end):
        key[i] = -ratio(items.value[i], per_second * items.seconds[i] + per_byte * items.memory[i])
        order[i] = i
    sort_by(key, order[:end])


@helper
def lagrangian(items, start, end, D, per_second, per_byte):
    """Return the Lagrangian bound for a threshold at the prices `per_second` and `per_byte`.

    This is an upper bound on the value of every batch whose time limit is D. The time limit of an
    item is the time that its deadline leaves for a batch, and the time limit of a batch is the
    smallest one among its items. The items start..end-1 are those whose time limit is exactly D.
    Such a batch contains at least one of these items, even if their reduced values are negative.
    The bound allows for rounding. Each addition is rounded, and the error of a reduced value is at
    most a few units in the last place of its largest term.
    """
    bound = per_second * max(D, 0.0) + per_byte * items.memory_room
    forced, largest = -np.inf, 0.0
    values = 0.0
    for i in range(end):
        reduced = items.value[i] - per_second * items.seconds[i] - per_byte * items.memory[i]
        if items.seconds[i] <= D and reduced > 0.0:
            bound += reduced
            values += items.value[i]
        if i >= start and reduced > forced:
            forced = reduced
            largest = abs(reduced) + items.value[i]
    return bound + min(forced, 0.0) + DIGIT * ((end + 8.0) * bound + 4.0 * (values + largest))


@helper
def prices(items, order, end, D, per_second, per_byte):
    """Return prices of time and memory that follow from a greedy batch.

    The prices are those of the first item in `order` that does not fit. Also return whether the
    relaxed solution exceeds the memory. The arguments `per_second` and `per_byte` are the costs by
    which the items are ordered.
    """
    capacity = per_second * max(D, 0.0) + per_byte * items.memory_room
    used, memory, price = 0.0, 0.0, 0.0
    for i in order:
        if i < end and items.seconds[i] <= D:
            cost = per_second * items.seconds[i] + per_byte * items.memory[i]
            if used + cost > capacity:
                price = ratio(items.value[i], cost)
                memory += items.memory[i] * (capacity - used) / cost
                break
            used += cost
            memory += items.memory[i]
    return price * per_second, price * per_byte, memory > items.memory_room


@helper
def dual(items, by_time, by_memory, start, end, D, passes, enough, order):
    """Return an approximately minimal Lagrangian bound for a threshold, with its prices.

    Prices of time alone, of memory alone, and of mixtures found by bisection are tried, until a
    bound is at most `enough`. `by_time` and `by_memory` contain at least the items below `end`,
    sorted by decreasing value per second and per byte. `order` is scratch space.
    """
    scale_t, scale_memory = ratio(1.0, D), ratio(1.0, items.memory_room)
    if not scale_t < np.inf:
        scale_t = 1.0
    if not scale_memory < np.inf:
        scale_memory = 1.0
    best, best_t, best_memory = np.inf, 0.0, 0.0
    low, high = 0.0, 1.0
    for trial in range(passes + 2):
        mix = 0.0 if trial == 0 else (1.0 if trial == 1 else 0.5 * (low + high))
        a, b = (1.0 - mix) * scale_t, mix * scale_memory
        if trial > 1:
            by_density(items, end, a, b, order)
        inside = by_time if trial == 0 else (by_memory if trial == 1 else order[:end])
        per_second, per_byte, too_much = prices(items, inside, end, D, a, b)
        bound = lagrangian(items, start, end, D, per_second, per_byte)
        if bound < best:
            best, best_t, best_memory = bound, per_second, per_byte
        if best <= enough or (trial == 0 and not too_much):
            break  # the bound is low enough, or memory does not bind
        if trial > 1:
            if too_much:
                low = mix
            else:
                high = mix
    return best, best_t, best_memory


@kernel("void(i8[::1], i8[::1], Items, f8, i8, f8[::1], f8[::1], f8[::1], u1[::1])")
def bound_blocks(starts, ends, items, enough, passes, bound, per_second, per_byte, stop):
    """Compute a bound with its prices for every block of thresholds, given sorted items.

    Bounds of at most `enough` need not be tight. The items of a block are the items whose time
    limits are the block's thresholds. A batch contains at least one of these items, and its total
    time is at most the largest of their time limits. The prices of the previous block are tried
    first.
    """
    size = len(items.value)
    orders = np.empty((3, size), np.int64)
    by_time, by_memory, order = orders[0], orders[1], orders[2]
    by_density(items, size, 1.0, 0.0, by_time)
    by_density(items, size, 0.0, 1.0, by_memory)
    last_t, last_memory = 0.0, 0.0
    for j in range(len(ends)):
        if stop[0]:
            return
        start, end, D = starts[j], ends[j], items.room[starts[j]]
        found = lagrangian(items, start, end, D, last_t, last_memory)
        if found > enough:
            less, t, memory = dual(items, by_time, by_memory, start, end, D, passes, enough, order)
            if less < found:
                found, last_t, last_memory = less, t, memory
        bound[j], per_second[j], per_byte[j] = found, last_t, last_memory
