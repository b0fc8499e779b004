"""Kernels that extend the labels of batches by one item at a time.

A label consists of the time, memory and value of a batch.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel, rows
from specopt.solvers.kernels.sorting import sort_by
from specopt.solvers.verification_batch.kernels.bound import Items  # noqa: F401  (in a signature)

BatchLabel = rows("BatchLabel", seconds="f8", memory="f8", value="f8", node="i8")
"""A label, which consists of the time, memory and value of a batch.

`node` is the node from which the items of the batch can be traced.
"""

Threshold = rows("Threshold", end="i8", D="f8", per_second="f8", per_byte="f8")
"""A threshold for the search, which is the tightest deadline of a batch.

The items below `end` are those whose deadline is no earlier. `D` is the threshold's time limit, and
`per_second` and `per_byte` are the prices of time and memory at the threshold.
"""


@helper
def promising(first, items, thresholds, rest, t, memory, value, enough):
    """Return whether a label can still be completed to a batch with a value above `enough`.

    The thresholds from `first` on are considered. `rest` is the total reduced value of the
    remaining items, at the prices of each threshold.
    """
    for k in range(first, len(thresholds)):
        threshold = thresholds[k]
        if t <= threshold.D:
            seconds, bytes_left = threshold.D - t, items.memory_room - memory
            if (
                value + threshold.per_second * seconds + threshold.per_byte * bytes_left + rest[k]
                > enough
            ):
                return True
    return False


@helper
def dominated(mem, val, front_mem, front_val, size):
    """Insert a label into the Pareto front that trades memory against value.

    The front covers all labels whose time does not exceed that of the new label. Return the new
    size of the front, or -1 if the new label is dominated, that is, if some label on the front has
    no more memory and no less value.
    """
    low, high = 0, size
    while low < high:  # the first entry with more memory
        middle = (low + high) // 2
        if front_mem[middle] <= mem:
            low = middle + 1
        else:
            high = middle
    if low > 0 and front_val[low - 1] >= val:
        return -1
    start = low
    if start > 0 and front_mem[start - 1] == mem:
        start -= 1
    stop = start
    while stop < size and front_val[stop] <= val:
        stop += 1
    shift = 1 - (stop - start)
    if shift > 0:
        for k in range(size - 1, stop - 1, -1):
            front_mem[k + 1], front_val[k + 1] = front_mem[k], front_val[k]
    elif shift < 0:
        for k in range(stop, size):
            front_mem[k + shift], front_val[k + shift] = front_mem[k], front_val[k]
    front_mem[start], front_val[start] = mem, val
    return size + shift


@kernel(
    "Tuple((i8, i8, f8, i8))(i8, i8, i8, BatchLabel[::1], Items, Threshold[::1], f8[:, ::1], f8,"
    " BatchLabel[::1], i8[::1])",
    steps=lambda i, count, *_: 100 * count,
)
def extend(i, count, base, labels, items, thresholds, rest, enough, out, parents):
    """Extend every label by the item with index i.

    Each label is kept both with and without the item, unless the result is dominated or hopeless.

    `labels` contains `count` labels in order of increasing time, which is also the order of the
    result. `rest` contains, for each item, the total reduced value of that item and all later
    items, at the prices of each threshold. `parents` receives the node of the label that each new
    node extends. New nodes are numbered from `base`. Return the numbers of labels and of new nodes,
    and the value and node of the best label that ends with the item (-inf and -1 if there is no
    such label).
    """
    first = 0  # the first of the remaining thresholds
    while first < len(thresholds) and thresholds[first].end <= i + 1:
        first += 1
    weight, room = items.seconds[i], items.room[i]
    front_memory, front_value = np.empty(2 * count + 1), np.empty(2 * count + 1)
    front, size, nodes = 0, 0, 0
    best, best_node = -np.inf, -1
    without, taking = 0, 0
    while without < count or taking < count:
        takes = without == count or (
            taking < count and labels[without].seconds > labels[taking].seconds + weight
        )
        label = labels[taking if takes else without]
        t, memory, value, node = label.seconds, label.memory, label.value, label.node
        if takes:
            taking += 1
            t, memory, value = t + weight, memory + items.memory[i], value + items.value[i]
            if memory > items.memory_room or t > room:
                continue
        else:
            without += 1
        is_best = takes and value > best
        if is_best:
            best, best_node = value, base + nodes
        is_promising = promising(first, items, thresholds, rest[i + 1], t, memory, value, enough)
        entered = dominated(memory, value, front_memory, front_value, front) if is_promising else -1
        if entered >= 0:
            front = entered
            new = out[size]
            new.seconds, new.memory, new.value, new.node = (
                t,
                memory,
                value,
                base + nodes if takes else node,
            )
            size += 1
        if takes and (is_best or entered >= 0):
            parents[nodes] = node
            nodes += 1
    return size, nodes, best, best_node


@helper
def sums(values, first, last):
    """Return the sums over all subsets of values[first:last], indexed by the bits of the subset."""
    found = np.zeros(1 << (last - first))
    for k in range(last - first):
        for mask in range(1 << k):
            found[(1 << k) + mask] = found[mask] + values[first + k]
    return found


@kernel("i8(f8[::1], f8[::1], f8[::1], f8, f8)")
def best_of_few(values, seconds, memory, room, space):
    """Return the most valuable subset within the limits, encoded as bits.

    `room` limits the time, and `space` limits the memory. Subsets of the first half, in order of
    decreasing time, are combined with subsets of the second half, in order of increasing time. A
    Fenwick tree over memory contains the second-half subsets that fit in time, and finds the most
    valuable subset that fits in memory.
    """
    size, half = len(values), len(values) // 2
    v, t, m = sums(values, 0, half), sums(seconds, 0, half), sums(memory, 0, half)
    V, T, M = sums(values, half, size), sums(seconds, half, size), sums(memory, half, size)
    by_time, by_memory, by_falling_time = np.arange(len(T)), np.arange(len(M)), np.arange(len(t))
    sort_by(T, by_time)
    sort_by(M, by_memory)
    sort_by(-t, by_falling_time)
    place = np.empty(len(V), np.int64)
    for k in range(len(V)):
        place[by_memory[k]] = k + 1
    tree = np.full(len(V) + 1, -1)
    best, found, entered = 0.0, 0, 0
    for first in by_falling_time:
        while entered < len(V) and t[first] + T[by_time[entered]] <= room:
            new = by_time[entered]
            entered += 1
            k = place[new]
            while k < len(tree):
                if tree[k] < 0 or V[tree[k]] < V[new]:
                    tree[k] = new
                k += k & -k
        low, high = 0, len(V)  # number of subsets of the second half that fit in memory
        while low < high:
            middle = (low + high) // 2
            if m[first] + M[by_memory[middle]] <= space:
                low = middle + 1
            else:
                high = middle
        while low > 0:
            other = tree[low]
            if other >= 0 and v[first] + V[other] > best:
                best, found = v[first] + V[other], first + (other << half)
            low -= low & -low
    return found
