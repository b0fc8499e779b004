"""Verification batching (paper 2, Eq. 13-15 at one epoch): a sweep, bounds, and one pass of Pareto labels.

Fix the tightest deadline D that a batch admits: what is left is a knapsack in time (D - now - c) and memory over the
requests that are due no earlier. With requests sorted by decreasing deadline ("items" below) the requests of every
threshold are a prefix, and the room in time shrinks as the prefix grows. A batch of weights summing to t fits the
threshold D if now + (c + t) <= D, in floating point, in every kernel.
"""

import numpy as np
from numba import njit, types

ROUNDING = 1e-13
"""More than the relative error of the sums here: bounds are raised by it."""

PASSES = 30
"""Bisections of the mix of time and memory in `dual`."""

STARTS = 4
"""Thresholds from which `sweep` starts exchanges."""

GRID = 4
"""Mixes of time and memory at which `sweep` is greedy, where memory may bind."""

FEW = 10
"""Bisections below which `dual` does without memory alone."""

MIXES = 5
"""Bisections of the mix of time and memory in `sweep`."""

CORE = 10
"""Items next to the price that `sweep` enumerates."""

ROUNDS = 6
"""Most rounds of exchanges."""


@njit(cache=True)
def ratio(value, cost):
    """Return value / cost, infinite at no cost."""
    return value / cost if cost > 0.0 else np.inf


@njit(cache=True)
def by_density(v, w, m, per_second, per_byte, end):
    """Return the items below `end` by decreasing value per priced cost, ties in their order."""
    key = np.empty(end)
    for i in range(end):
        key[i] = -ratio(v[i], per_second * w[i] + per_byte * m[i])
    return np.argsort(key, kind="mergesort")


@njit(cache=True)
def sort_items(v, w, m, d, now, c, M):
    """Return the requests that are worth something and fit alone, by decreasing deadline, ties by index."""
    found = np.empty(len(v), np.int64)
    size = 0
    for i in range(len(v)):
        if v[i] > 0.0 and m[i] <= M and now + (c + w[i]) <= d[i]:
            found[size] = i
            size += 1
    found = found[:size]
    return found[np.argsort(-d[found], kind="mergesort")]


@njit(cache=True)
def group_ends(d):
    """Return, for each distinct deadline of sorted items, the end of the prefix that is due no earlier."""
    ends = np.empty(len(d), np.int64)
    size = 0
    for i in range(len(d)):
        if i + 1 == len(d) or d[i + 1] != d[i]:
            ends[size] = i + 1
            size += 1
    return ends[:size]


@njit(cache=True)
def fill(order, end, v, w, m, now, c, D, M, taken, t, mem):
    """Take what fits in the given order, skipping what does not; return value gained, time and memory used."""
    gained = 0.0
    for i in order:
        if i < end and not taken[i] and mem + m[i] <= M and now + (c + (t + w[i])) <= D:
            taken[i] = True
            t += w[i]
            mem += m[i]
            gained += v[i]
    return gained, t, mem


@njit(cache=True)
def greedy_value(order, end, v, w, m, now, c, D, M):
    """Return what `fill` gains from nothing."""
    t, mem, gained = 0.0, 0.0, 0.0
    for i in order:
        if i < end and mem + m[i] <= M and now + (c + (t + w[i])) <= D:
            t += w[i]
            mem += m[i]
            gained += v[i]
    return gained


@njit(cache=True)
def use(taken, end, v, w, m):
    """Return value, time and memory of what is taken, summed in order."""
    value, t, mem = 0.0, 0.0, 0.0
    for i in range(end):
        if taken[i]:
            value += v[i]
            t += w[i]
            mem += m[i]
    return value, t, mem


@njit(cache=True)
def improve(order, end, v, w, m, now, c, D, M, taken, stop):
    """Exchange until nothing gains: one for one or two, and one in for the least dense, then refill; return the value.

    order: the items below `end` by decreasing density.
    """
    value, t, mem = use(taken, end, v, w, m)
    trial = np.empty(len(taken), np.bool_)
    for _ in range(ROUNDS):
        before = value
        for i in order:  # out with one, refill with others
            if stop[0]:
                return value
            if not taken[i]:
                continue
            left_t, left_mem, gained = t - w[i], mem - m[i], 0.0
            for j in order:
                if not taken[j] and j != i and left_mem + m[j] <= M and now + (c + (left_t + w[j])) <= D:
                    left_t += w[j]
                    left_mem += m[j]
                    gained += v[j]
            if gained > v[i] * (1.0 + 1e-12):
                trial[:] = taken
                trial[i] = False
                left_t, left_mem = t - w[i], mem - m[i]
                for j in order:
                    if not trial[j] and j != i and left_mem + m[j] <= M and now + (c + (left_t + w[j])) <= D:
                        trial[j] = True
                        left_t += w[j]
                        left_mem += m[j]
                trial_value, trial_t, trial_mem = use(trial, end, v, w, m)
                if trial_value > value and trial_mem <= M and now + (c + trial_t) <= D:
                    taken[:] = trial
                    value, t, mem = trial_value, trial_t, trial_mem
            else:  # out with one, in with the most valuable that fits, the rest refilled
                best, chosen = v[i] * (1.0 + 1e-12), -1
                left_t, left_mem = t - w[i], mem - m[i]
                for j in order:
                    if not taken[j] and v[j] > best and left_mem + m[j] <= M and now + (c + (left_t + w[j])) <= D:
                        best, chosen = v[j], j
                if chosen >= 0:
                    taken[i], taken[chosen] = False, True
                    fill(order, end, v, w, m, now, c, D, M, taken, left_t + w[chosen], left_mem + m[chosen])
                    value, t, mem = use(taken, end, v, w, m)
        for j in order:  # in with one, out with the least dense, refill
            if stop[0]:
                return value
            if taken[j] or now + (c + w[j]) > D:
                continue
            more_t, more_mem, more = t + w[j], mem + m[j], value + v[j]
            at = len(order)
            while at > 0 and (more_mem > M or now + (c + more_t) > D):
                at -= 1
                i = order[at]
                if taken[i]:
                    more_t -= w[i]
                    more_mem -= m[i]
                    more -= v[i]
            hole_t, hole_mem = more_t, more_mem
            for i in order:
                if i != j and not taken[i] and more_mem + m[i] <= M and now + (c + (more_t + w[i])) <= D:
                    more_t += w[i]
                    more_mem += m[i]
                    more += v[i]
            if more > value * (1.0 + 1e-12):
                trial[:] = taken
                trial[j] = True
                for k in range(at, len(order)):
                    if order[k] != j:
                        trial[order[k]] = False
                fill(order, end, v, w, m, now, c, D, M, trial, hole_t, hole_mem)
                trial_value, trial_t, trial_mem = use(trial, end, v, w, m)
                if trial_value > value and trial_mem <= M and now + (c + trial_t) <= D:
                    taken[:] = trial
                    value, t, mem = trial_value, trial_t, trial_mem
        if value <= before:
            break
    return value


@njit(cache=True)
def lagrangian(v, w, m, start, end, now, c, D, M, per_second, per_byte):
    """Return the bound of a threshold at given prices: no batch whose tightest deadline is D has more.

    start, end: the items that are due at D itself; a batch holds one of them at least, even if it does not pay.
    """
    room = max(D - now - c, 0.0)
    bound = per_second * room + per_byte * M
    for i in range(end):
        if now + (c + w[i]) <= D:
            bound += max(0.0, v[i] - per_second * w[i] - per_byte * m[i])
    forced = -np.inf
    for i in range(start, end):
        forced = max(forced, v[i] - per_second * w[i] - per_byte * m[i])
    bound += min(forced, 0.0)
    return bound + ROUNDING * (bound + per_second * (abs(D) + abs(now) + c))


@njit(cache=True)
def prices(order, end, v, w, m, now, c, D, M, per_second, per_byte):
    """Return the prices of time and memory at the item where a greedy in the given order first fails to fit.

    per_second, per_byte: the cost that the order is by. Also whether the relaxed solution wants more memory than M.
    """
    capacity = per_second * max(D - now - c, 0.0) + per_byte * M
    used, mem = 0.0, 0.0
    for i in order:
        if i < end and now + (c + w[i]) <= D:
            cost = per_second * w[i] + per_byte * m[i]
            if used + cost > capacity:
                price = ratio(v[i], cost)
                mem += m[i] * (capacity - used) / cost
                return price * per_second, price * per_byte, mem > M
            used += cost
            mem += m[i]
    return 0.0, 0.0, mem > M


@njit(cache=True)
def dual(by_time, v, w, m, start, end, now, c, D, M, passes):
    """Return (nearly) the least Lagrangian bound of a threshold, and its prices: a bisection of the surrogate's mix.

    by_time: items, at least those below `end`, by decreasing value per second.
    """
    scale_t, scale_mem = ratio(1.0, D - now - c), ratio(1.0, M)
    if not scale_t < np.inf:
        scale_t = 0.0
    if not scale_mem < np.inf:
        scale_mem = 0.0
    best, best_t, best_mem = np.inf, 0.0, 0.0
    low, high = 0.0, 1.0
    for trial in range(passes + 2):
        mix = 0.0 if trial == 0 else (1.0 if trial == 1 else 0.5 * (low + high))
        a, b = (1.0 - mix) * scale_t, mix * scale_mem
        if trial == 1 and passes < FEW:
            continue
        order = by_density(v, w, m, a, b, end) if trial > 0 else by_time
        per_second, per_byte, too_much = prices(order, end, v, w, m, now, c, D, M, a, b)
        bound = lagrangian(v, w, m, start, end, now, c, D, M, per_second, per_byte)
        if bound < best:
            best, best_t, best_mem = bound, per_second, per_byte
        if trial == 0 and not too_much:
            break  # memory does not matter: time alone is the relaxation
        if trial > 1:
            if too_much:
                low = mix
            else:
                high = mix
    return best, best_t, best_mem


@njit(cache=True)
def enumerate_core(v, w, m, end, now, c, D, M, per_second, per_byte, order, core, taken):
    """Take what pays at given prices, and of the items next to the price the best subset; refill; return the value."""
    key = np.empty(end)
    for i in range(end):
        key[i] = np.inf
        if now + (c + w[i]) <= D:
            key[i] = abs(v[i] - per_second * w[i] - per_byte * m[i])
    nearest = np.argsort(key)
    size = 0
    while size < min(core, end) and key[nearest[size]] < np.inf:
        size += 1
    taken[:] = False
    for i in range(end):
        taken[i] = key[i] < np.inf and v[i] > per_second * w[i] + per_byte * m[i]
    for k in range(size):
        taken[nearest[k]] = False
    value, t, mem = use(taken, end, v, w, m)
    if mem > M or now + (c + t) > D:
        return -1.0
    values, times, sizes = np.empty(1 << size), np.empty(1 << size), np.empty(1 << size)
    values[0], times[0], sizes[0] = value, t, mem
    best, chosen = value, 0
    for k in range(size):
        i = nearest[k]
        for mask in range(1 << k):
            more = (1 << k) + mask
            values[more] = values[mask] + v[i]
            times[more] = times[mask] + w[i]
            sizes[more] = sizes[mask] + m[i]
            if values[more] > best and sizes[more] <= M and now + (c + times[more]) <= D:
                best, chosen = values[more], more
    for k in range(size):
        if chosen >> k & 1:
            taken[nearest[k]] = True
    fill(order, end, v, w, m, now, c, D, M, taken, times[chosen], sizes[chosen])
    return use(taken, end, v, w, m)[0]


_IN = types.Array(types.float64, 1, "C", readonly=True)
_F, _I, _B = types.float64[::1], types.int64[::1], types.boolean[::1]
_f = types.float64
_S = types.Array(types.uint8, 1, "C")  # its entry turns 1 when the caller has no more time: what is found so far counts


@njit([
    types.int64(_F, _F, _F, _F, _f, _f, _f, _I, _S),
    types.int64(_IN, _IN, _IN, _IN, _f, _f, _f, _I, _S),
], cache=True, nogil=True)  # fmt: skip
def sweep_until(values, seconds, memory, deadlines, now, c, M, out, stop):
    """Fill `out` with a batch, in the order of its indices, and return how many requests it has."""
    if len(seconds) != len(values) or len(memory) != len(values) or len(deadlines) != len(values):
        raise ValueError("values, seconds, memory, deadlines and out must have one length")
    if len(out) != len(values):
        raise ValueError("values, seconds, memory, deadlines and out must have one length")
    items = sort_items(values, seconds, memory, deadlines, now, c, M)
    size = len(items)
    if size == 0:
        return 0
    v, w, m, d = values[items], seconds[items], memory[items], deadlines[items]
    ends = group_ends(d)
    binding = m.sum() > M
    single = np.argmax(v)
    by_time = by_density(v, w, m, 1.0, 0.0, size)
    by_memory = by_density(v, w, m, 0.0, 1.0, size)
    score = np.full(len(ends), -1.0)
    for j in range(len(ends)):
        if stop[0]:
            break
        end, D = ends[j], d[ends[j] - 1]
        score[j] = greedy_value(by_time, end, v, w, m, now, c, D, M)
        if binding:
            score[j] = max(score[j], greedy_value(by_memory, end, v, w, m, now, c, D, M))
    if binding:  # mixes of time and memory tell where both bind
        room = d[ends[np.argmax(score)] - 1] - now - c
        for k in range(GRID):
            mix = (k + 1.0) / (GRID + 1.0)
            mixed = by_density(
                v, w, m, (1.0 - mix) * ratio(1.0, room) if room > 0.0 else 0.0, mix / max(M, 1e-300), size
            )
            for j in range(len(ends)):
                if stop[0]:
                    break
                score[j] = max(score[j], greedy_value(mixed, ends[j], v, w, m, now, c, d[ends[j] - 1], M))
    best_value = v[single]
    best = np.zeros(size, np.bool_)
    best[single] = True
    top = np.argmax(score)
    for other in (by_time, by_memory):  # the guarantee: never less than the best greedy of all thresholds
        trial = np.zeros(size, np.bool_)
        value = fill(other, ends[top], v, w, m, now, c, d[ends[top] - 1], M, trial, 0.0, 0.0)[0]
        if value > best_value:
            best_value = value
            best = trial
    promise = np.full(len(ends), np.inf)  # bounds at the prices of the thresholds visited so far
    taken, other_taken = np.empty(size, np.bool_), np.empty(size, np.bool_)
    for visit in range(min(STARTS, len(ends))):
        if stop[0]:
            break
        j = np.argmax(score) if visit % 2 == 0 else np.argmax(promise)
        if promise[j] <= best_value:
            score[j] = -1.0
            continue
        score[j] = -1.0
        end, D = ends[j], d[ends[j] - 1]
        if binding:
            _, per_second, per_byte = dual(by_time, v, w, m, 0, end, now, c, D, M, MIXES)
            order = by_density(v, w, m, per_second, per_byte, end) if per_second + per_byte > 0.0 else by_time
        else:
            per_second, per_byte, _ = prices(by_time, end, v, w, m, now, c, D, M, 1.0, 0.0)
            order = by_time
        for k in range(len(ends)):
            if promise[k] > best_value:
                start = ends[k - 1] if k > 0 else 0
                bound = lagrangian(v, w, m, start, ends[k], now, c, d[ends[k] - 1], M, per_second, per_byte)
                promise[k] = min(promise[k], bound)
        promise[j] = -1.0
        taken[:] = False
        value = fill(order, end, v, w, m, now, c, D, M, taken, 0.0, 0.0)[0]
        other_value = enumerate_core(v, w, m, end, now, c, D, M, per_second, per_byte, order, CORE, other_taken)
        if other_value > value:
            value = other_value
            taken[:] = other_taken
        for k in range(2 if binding else 0):
            other = by_time if k == 0 else by_memory
            if greedy_value(other, end, v, w, m, now, c, D, M) > value:
                taken[:] = False
                value = fill(other, end, v, w, m, now, c, D, M, taken, 0.0, 0.0)[0]
        value = improve(order[order < end], end, v, w, m, now, c, D, M, taken, stop)
        if value > best_value:
            best_value = value
            best[:] = taken
    chosen = np.zeros(len(values), np.bool_)
    for i in range(size):
        if best[i]:
            chosen[items[i]] = True
    count = 0
    for i in range(len(values)):
        if chosen[i]:
            out[count] = i
            count += 1
    return count


@njit([types.int64(_F, _F, _F, _F, _f, _f, _f, _I), types.int64(_IN, _IN, _IN, _IN, _f, _f, _f, _I)], cache=True)
def sweep(values, seconds, memory, deadlines, now, c, M, out):
    """Fill `out` with a batch, in the order of its indices, and return how many requests it has."""
    return sweep_until(values, seconds, memory, deadlines, now, c, M, out, np.zeros(1, np.uint8))


@njit(types.float64(_F, _F, _F, types.int64, _f, _f, _f, _f, _f, _f, types.int64, _B, _S), cache=True, nogil=True)
def polish(v, w, m, end, now, c, D, M, per_second, per_byte, core, taken, stop):
    """Fill `taken` with a batch of a threshold by its prices: the best subset of a core, exchanges; return its value.

    The value is negative if what pays without the core does not fit.
    """
    order = by_density(v, w, m, per_second, per_byte, end)
    value = enumerate_core(v, w, m, end, now, c, D, M, per_second, per_byte, order, core, taken)
    if value >= 0.0:
        value = improve(order, end, v, w, m, now, c, D, M, taken, stop)
    return value


@njit(types.void(_F, _F, _F, _F, _I, _f, _f, _f, _f, _F, _F, _F, _S), cache=True, nogil=True)
def bound_thresholds(v, w, m, d, ends, now, c, M, enough, bound, per_second, per_byte, stop):
    """Fill a bound for every threshold of sorted items, and its prices; tight above `enough`.

    Cheap bounds come first: the prices of the threshold before, then time alone and memory alone.
    """
    size = len(v)
    by_time = by_density(v, w, m, 1.0, 0.0, size)
    by_memory = by_density(v, w, m, 0.0, 1.0, size)
    last_t, last_mem = 0.0, 0.0
    for j in range(len(ends)):
        if stop[0]:
            return
        start, end, D = ends[j - 1] if j > 0 else 0, ends[j], d[ends[j] - 1]
        bound[j] = lagrangian(v, w, m, start, end, now, c, D, M, last_t, last_mem)
        per_second[j], per_byte[j] = last_t, last_mem
        if bound[j] <= enough:
            continue
        a, b, too_much = prices(by_time, end, v, w, m, now, c, D, M, 1.0, 0.0)
        other = lagrangian(v, w, m, start, end, now, c, D, M, a, b)
        if other < bound[j]:
            bound[j], per_second[j], per_byte[j] = other, a, b
        if bound[j] > enough and too_much:
            a, b, _ = prices(by_memory, end, v, w, m, now, c, D, M, 0.0, 1.0)
            other = lagrangian(v, w, m, start, end, now, c, D, M, a, b)
            if other < bound[j]:
                bound[j], per_second[j], per_byte[j] = other, a, b
            if bound[j] > enough:
                other, a, b = dual(by_time, v, w, m, start, end, now, c, D, M, PASSES)
                if other < bound[j]:
                    bound[j], per_second[j], per_byte[j] = other, a, b
        last_t, last_mem = per_second[j], per_byte[j]


@njit(cache=True)
def promising(t, mem, val, now, c, M, D, per_second, per_byte, rest, enough):
    """Tell whether a label can still be completed to more than `enough` under one of the thresholds."""
    for a in range(len(D)):
        if now + (c + t) <= D[a]:
            room = D[a] - now - c
            if val + per_second[a] * (room - t) + per_byte[a] * (M - mem) + rest[a] > enough:
                return True
    return False


@njit(cache=True)
def dominated(mem, val, front_mem, front_val, size):
    """Enter a label into the front of (memory, value) of all labels that take no more time.

    Return the new size of the front, or -1 if an entered label has no more memory and no less value.
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


_FOUND = types.Tuple((types.int64, types.int64, _f, types.int64))


@njit(_FOUND(
    _F, _F, _F, _I, types.int64, _f, _f, _f, _f, _f, _f, _f, _F, _F, _F, _F, _f,
    _F, _F, _F, _I, _I, types.int64), cache=True)  # fmt: skip
def extend(t, mem, val, node, count, value, weight, memory, deadline, now, c, M, D, per_second, per_byte, rest, enough,
           out_t, out_mem, out_val, out_node, parents, base):  # fmt: skip
    """Offer one item to every label: labels with and without it, merged by time, dominated and hopeless ones dropped.

    t, mem, val, node: `count` labels by increasing time. D, per_second, per_byte, rest: the thresholds that are still
    to come after this item, their prices, and what their later items are worth at those. parents: node of the label
    that each new node extends; new nodes count from `base`.
    Return the numbers of labels and of new nodes, and value and node of the best label that ends with this item
    (-inf and -1 if there is none).
    """
    front_mem, front_val = np.empty(2 * count + 1), np.empty(2 * count + 1)
    front, size, nodes = 0, 0, 0
    best, best_node = -np.inf, -1
    without, taking = 0, 0
    while without < count or taking < count:
        if taking >= count or (without < count and t[without] <= t[taking] + weight):
            new_t, new_mem, new_val = t[without], mem[without], val[without]
            parent = -1
            label = node[without]
            without += 1
        else:
            new_t, new_mem, new_val = t[taking] + weight, mem[taking] + memory, val[taking] + value
            parent = node[taking]
            label = base + nodes
            taking += 1
            if new_mem > M or now + (c + new_t) > deadline:
                continue
            if new_val > best:
                best, best_node = new_val, label
                parents[nodes] = parent
                nodes += 1
                if not promising(new_t, new_mem, new_val, now, c, M, D, per_second, per_byte, rest, enough):
                    continue
                parent = -1
        if not promising(new_t, new_mem, new_val, now, c, M, D, per_second, per_byte, rest, enough):
            continue
        entered = dominated(new_mem, new_val, front_mem, front_val, front)
        if entered < 0:
            continue
        front = entered
        if parent >= 0:
            parents[nodes] = parent
            nodes += 1
        out_t[size], out_mem[size], out_val[size], out_node[size] = new_t, new_mem, new_val, label
        size += 1
    return size, nodes, best, best_node
