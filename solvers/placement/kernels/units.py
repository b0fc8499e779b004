"""Kernels that evaluate units and find the best patterns of a unit.

The kernels compute the cycles and the value of a unit, bounds on options within a box of periods,
and the best patterns at client prices. An option is a class of clients with one way to draft. If
the number of clients of a draft unit is known only as a range, an option has a minimum and a
maximum drafting time. The bounds then hold for all times in between.
"""

import math

import numpy as np

from specopt.solvers.kernels.heap import pop, push
from specopt.solvers.kernels.kernel import helper, kernel, record, rows

EDGE = 1e-12

Option = rows(
    "Option",
    cls="i8",
    draft="i8",
    drafter="i8",
    tokens="f8",
    new="f8",
    context="f8",
    memory="f8",
    weight="f8",
    least="f8",
    watts="f8",
    sent="f8",
    first="i8",
    trips="i8",
    soonest="f8",
    latest="f8",
    ahead="f8",
    held="f8",
)
"""An option: one way in which clients of a class draft with one verifier.

`soonest` and `latest` are the minimum and maximum duration of drafting after a rejected draft, in
seconds.
"""

Unit = record(
    "Unit",
    passes="f8[:, ::1]",
    beside="f8[:, ::1]",
    length="f8",
    parallel="b1",
    open_share="f8",
    room="f8",
    kv="f8",
    idle="f8",
    busy="f8",
    price="f8",
)
"""A unit of a verifier, together with the drafter that runs next to it, if any.

`passes` and `beside` are the linear pieces of the pass durations of the verifier and of the
drafter. `room` is the memory available for caches, in bytes, and `kv` is the cache size per token,
in bytes.
"""

GOODPUT, FAIR, CAPACITY, COST, ENERGY = range(5)


@helper
def largest(passes, b, m, c):
    """Return the duration of a pass with b sequences, m new tokens and c cached tokens, in seconds.

    The duration is the maximum of the linear pieces in `passes`, but at least 0.
    """
    total = 0.0
    for i in range(len(passes)):
        total = max(total, passes[i, 0] + passes[i, 1] * b + passes[i, 2] * m + passes[i, 3] * c)
    return total


@helper
def pass_seconds(unit, b, m, c):
    """Return the duration B of a pass of a unit, including its drafter, in seconds."""
    total = largest(unit.passes, b, m, c)
    draft = largest(unit.beside, b, b * unit.length if unit.parallel else b, c)
    return (total + (draft if unit.parallel else unit.length * draft)) / unit.open_share


@helper
def passes_per_round(option, trips, t, drafting):
    """Return n(t), the mean number of passes per round of a client if the period is t."""
    hits = misses = 0.0
    for k in range(option.first, option.first + option.trips):
        sent = trips[k] + option.sent
        misses += np.ceil((sent + drafting) / t * (1.0 - EDGE))
        if option.held > 0.0:
            hits += np.ceil((sent + max(0.0, option.ahead - (t + sent))) / t * (1.0 - EDGE))
    return 1.0 + (option.held * hits + (1.0 - option.held) * misses) / option.trips


@helper
def mean_away(option, trips, t, drafting):
    """Return the mean time, in seconds, that a client is away between passes if the period is t."""
    hits = misses = 0.0
    for k in range(option.first, option.first + option.trips):
        sent = trips[k] + option.sent
        misses += sent + drafting
        hits += sent + max(0.0, option.ahead - (t + sent))
    return (option.held * hits + (1.0 - option.held) * misses) / option.trips


@helper
def device_seconds(option, trips, t, drafting):
    """Return the mean time that a client's device drafts per round, in seconds."""
    lost = 0.0
    for k in range(option.first, option.first + option.trips):
        lost += min(option.ahead, t + trips[k] + option.sent)
    return option.held * option.ahead + (1.0 - option.held) * (lost / option.trips + drafting)


@helper
def run(unit, options, trips, chosen, counts, cycles, periods):
    """Compute the cycle and the period of every entry, and write them to `cycles` and `periods`.

    `chosen` and `counts` are the options and the numbers of clients of the entries. The maximum
    drafting times are used. Return whether batches are full, and the fraction of time in which the
    unit is busy.
    """
    size = len(chosen)
    n = np.ones(size)
    waits, light = 0.0, np.empty(size)
    for e in range(size):
        o = options[chosen[e]]
        p = pass_seconds(unit, 1.0, o.new, o.context)
        a = mean_away(o, trips, p, o.latest)
        wait = 0.5 * p * p / (a + p)
        periods[e] = p
        light[e] = a + p - wait
        waits += counts[e] * wait
    load = 0.0
    for e in range(size):
        light[e] += waits
        load += counts[e] * periods[e] / light[e]
    if load > 1.0 + EDGE:
        while True:
            b = m = c = 0.0
            for e in range(size):
                share = counts[e] / n[e]
                b += share
                m += share * options[chosen[e]].new
                c += share * options[chosen[e]].context
            if b < 1.0 - EDGE:
                break
            t = pass_seconds(unit, b, m, c)
            same = True
            for e in range(size):
                o = options[chosen[e]]
                later = passes_per_round(o, trips, t, o.latest)
                if later != n[e]:
                    same = False
                    n[e] = later
            if same:
                for e in range(size):
                    cycles[e], periods[e] = n[e] * t, t
                return True, 1.0
    for e in range(size):
        cycles[e] = light[e] * max(1.0, load)
    return False, min(1.0, load)


@helper
def worth_of(objective, option, cycle, seconds):
    """Return one client's contribution to the objective, where larger is better.

    `cycle` is the duration of the client's round, and `seconds` is the drafting time of the
    client's device in each round, both in seconds.
    """
    if objective == GOODPUT:
        return option.weight * option.tokens / cycle
    if objective == FAIR:
        gain = option.tokens / cycle
        return option.weight * math.log(gain) if gain > 0.0 else -math.inf
    if objective == ENERGY:
        return -option.watts * seconds / cycle
    return 0.0


@kernel(
    "f8(Unit, const Option[::1], const f8[::1], i8, const i8[::1], const i8[::1], f8)",
    steps=lambda unit, options, trips, objective, chosen, *_: 300 * len(chosen),
)
def value(unit, options, trips, objective, chosen, counts, slack):
    """Return a unit's contribution to the objective, or -inf if the unit is infeasible.

    `chosen` and `counts` are the options and their numbers of clients. Larger values are better, so
    prices and watts enter with a negative sign. `slack` is the relative tolerance of memory and
    minimum rates.
    """
    used = 0.0
    for e in range(len(chosen)):
        used += counts[e] * options[chosen[e]].memory
    if unit.kv * used > unit.room + slack * abs(unit.room):
        return -np.inf
    cycles, periods = np.empty(len(chosen)), np.empty(len(chosen))
    _, busy = run(unit, options, trips, chosen, counts, cycles, periods)
    total = 0.0
    if objective == COST:
        total = -unit.price
    elif objective == ENERGY:
        total = -(unit.idle + (unit.busy - unit.idle) * busy)
    for e in range(len(chosen)):
        o = options[chosen[e]]
        if o.tokens / cycles[e] < o.least * (1.0 - slack):
            return -np.inf
        total += counts[e] * worth_of(
            objective, o, cycles[e], device_seconds(o, trips, periods[e], o.latest)
        )
    return total


@kernel(
    "void(Unit, const Option[::1], const f8[::1], const i8[:, ::1], const i8[:, ::1], const"
    " i8[::1], i8, f8, f8[::1])",
    steps=lambda unit, options, trips, chosen, *_: 300 * chosen.size,
)
def values(unit, options, trips, chosen, counts, sizes, objective, slack, out):
    """Write the values of many units to `out`.

    The unit of row r consists of the first `sizes[r]` entries of the row.
    """
    for r in range(len(sizes)):
        out[r] = value(
            unit, options, trips, objective, chosen[r, : sizes[r]], counts[r, : sizes[r]], slack
        )


Box = rows("Box", full="b1", low="f8", high="f8", load_low="f8", load_high="f8")
"""A box of periods, or of waits and loads.

If batches are full, `low` and `high` are the ends of a range of periods. Otherwise, they are the
ends of a range of summed waits, and `load_low` and `load_high` are the ends of a range of loads.
Times are in seconds.
"""

Column = rows("Column", place="i8", worth="f8", bound="f8")
"""A fractional pattern, with the index of its box and its value.

For all patterns of the box, `bound` is an upper bound on the value minus the prices of the clients.
"""

Sizes = record("Sizes", base="f8", floor="f8", narrow="f8", threshold="f8", full="f8", classes="i8")
"""Parameters of a search over boxes.

`base` is the minimum time between two passes of a client without waits, and `floor` is the minimum
duration of a pass. A box is not split if the ratio of its ends is at most `narrow`. Boxes whose
bound is at most `threshold` are ignored. `full` is the additional price of a unit that is always
busy. `classes` is the number of rows that limit the clients of a class, which may be 0.
"""


@helper
def reach(unit, options, trips, objective, sizes, box, worths, shares, sums):
    """Write bounds on the contribution, load and wait of one client of every option in a box.

    `worths` receives the maximum contribution to the objective, `shares` receives the minimum load,
    and `sums` receives the minimum and maximum wait. The contribution of an option that cannot
    reach its minimum rate is -inf.
    """
    for k in range(len(options)):
        o = options[k]
        sums[0, k] = sums[1, k] = 0.0
        if box.full:
            # The period is the largest solution of t = B(t): at every longer period, the batch that
            # would form is finished in time.
            shares[k] = 1.0 / passes_per_round(o, trips, box.high, o.latest)
            n = passes_per_round(o, trips, box.high, o.soonest)
            cycle = max(n * box.low, box.low + mean_away(o, trips, box.high, o.soonest)) * (
                1.0 - EDGE
            )
            longest = box.high * passes_per_round(o, trips, box.low, o.latest)
            seconds = device_seconds(o, trips, box.low, o.soonest)
        else:
            p = pass_seconds(unit, 1.0, o.new, o.context)
            soon, late = mean_away(o, trips, p, o.soonest), mean_away(o, trips, p, o.latest)
            cycle = (soon + p + max(0.0, box.low - 0.5 * p * p / (soon + p))) * max(
                1.0, box.load_low
            )
            longest = late + p - 0.5 * p * p / (late + p) + box.high
            sums[0, k], sums[1, k] = 0.5 * p * p / (late + p), 0.5 * p * p / (soon + p)
            if box.load_low < 1.0:
                shares[k] = p / longest
            else:  # the final batch is smaller than 1, although the load is at least 1
                shares[k] = 1.0 / passes_per_round(o, trips, sizes.floor, o.latest)
            longest *= max(1.0, box.load_high)
            seconds = device_seconds(o, trips, p, o.soonest)
        if o.tokens / cycle < o.least * (1.0 - 1e-9):
            worths[k] = -np.inf
            continue
        worths[k] = worth_of(objective, o, longest if objective == ENERGY else cycle, seconds)
        if objective == ENERGY and not box.full and box.load_low < 1.0 and len(unit.beside) == 0:
            worths[k] -= (unit.busy - unit.idle) * shares[k]


LACKING = 1e4
"""Penalty for violating a row, relative to the largest absolute value of an option.

A larger penalty may tighten the bound, but also increases rounding errors.
"""

MAX_STEPS = 4000
"""Maximum number of simplex iterations per box. If a box needs more, its bound is infinite."""

LATER = (1.15, 1.4, 2.0, 4.0)
"""Additional periods, as multiples of the upper end of a box.

A pattern of the box must also finish its passes in time at these periods.
"""


@helper
def pass_rows(unit, options, period, shares, rows, rhs, size):
    """Write the rows of a linear program that limit the work of a pass to the period.

    There is one row for each pair of a linear piece of the verifier and a linear piece of the
    drafter. Without a drafter, there is one row for each piece of the verifier. Return the number
    of rows written so far.
    """
    times = 1.0 if unit.parallel else unit.length
    for i in range(len(unit.passes)):
        for j in range(max(1, len(unit.beside))):
            rhs[size] = period * unit.open_share * (1.0 + 1e-12) - unit.passes[i, 0]
            if len(unit.beside):
                rhs[size] -= times * unit.beside[j, 0]
            for k in range(len(options)):
                o = options[k]
                work = unit.passes[i, 1] + unit.passes[i, 2] * o.new + unit.passes[i, 3] * o.context
                if len(unit.beside):
                    each = unit.length if unit.parallel else 1.0
                    work += times * (
                        unit.beside[j, 1] + unit.beside[j, 2] * each + unit.beside[j, 3] * o.context
                    )
                rows[k, size] = shares[k] * work
            size += 1
    return size


@helper
def limits(unit, options, trips, objective, clients, sizes, box, worths, rows, rhs):
    """Write the linear program of a box, and return the number of rows.

    The program contains the values of the options, and rows for memory, time and the clients of
    each class. The result is -1 if no pattern is in the box.
    """
    count = len(options)
    shares, sums = np.empty(count), np.empty((2, count))
    reach(unit, options, trips, objective, sizes, box, worths, shares, sums)
    size = 1
    rhs[0] = unit.room * (1.0 + 1e-9)
    for k in range(count):
        rows[k, 0] = unit.kv * options[k].memory
    if box.full:
        size = pass_rows(unit, options, box.high, shares, rows, rhs, size)
        if not len(unit.beside):
            later = np.empty(count)
            for factor in LATER:
                for k in range(count):
                    later[k] = 1.0 / passes_per_round(
                        options[k], trips, factor * box.high, options[k].latest
                    )
                size = pass_rows(unit, options, factor * box.high, later, rows, rhs, size)
    elif len(unit.beside):  # only one client alone leaves batches that are not full
        rhs[size] = 1.0
        for k in range(count):
            rows[k, size] = 1.0
        size += 1
    else:
        rhs[size] = box.high * (1.0 + 1e-12)
        rhs[size + 1] = box.load_high * (1.0 + 1e-12) if box.load_low < 1.0 else 1.0
        for k in range(count):
            rows[k, size], rows[k, size + 1] = sums[0, k], shares[k]
        size += 2
    for c in range(sizes.classes):
        rhs[size] = clients[c]
        for k in range(count):
            rows[k, size] = 1.0 if options[k].cls == c else 0.0
        size += 1
    for r in range(size):
        if rhs[r] < 0.0:
            return -1
    # The last row is the only row with a negative right-hand side.
    if not box.full and len(unit.beside) == 0 and box.low > 0.0:
        rhs[size] = -box.low * (1.0 - 1e-12)
        for k in range(count):
            rows[k, size] = -sums[1, k]
        size += 1
    return size


@helper
def is_full(box):
    """Return whether a unit that runs in a box is always busy."""
    return box.full or box.load_low >= 1.0


@helper
def own_worth(unit, objective, box):
    """Return an upper bound on a unit's own contribution to the objective, without its clients."""
    if objective == COST:
        return -unit.price
    if objective == ENERGY:
        return -unit.busy if is_full(box) else -unit.idle
    return 0.0


@helper
def simplex(worths, rows, rhs, size, basis, amounts, duals):
    """Maximise worths x over rows x <= rhs and x >= 0 by the primal simplex method.

    `rows` contains one row of coefficients per option. If the right-hand side of a row is negative,
    the violation of the row is penalised by `LACKING` times the largest contribution of an option.
    The result is always an upper bound, and is the optimum if the penalty is large enough. `basis`
    and `amounts` receive one entry per row. The index -1 - r represents the slack or the violation
    of row r. After many iterations, the first improving option enters the basis, to avoid cycling.
    Return the optimum, or infinity if no optimum is found.
    """
    count = len(rows)
    inverse, costs, direction = np.zeros((size, size)), np.zeros(size), np.empty(size)
    largest = dearest = 0.0
    for k in range(count):
        largest = max(largest, worths[k])
        if worths[k] > -np.inf:
            dearest = max(dearest, abs(worths[k]))
    for r in range(size):
        basis[r], amounts[r], inverse[r, r] = -1 - r, abs(rhs[r]), 1.0
        if rhs[r] < 0.0:
            inverse[r, r], costs[r] = -1.0, LACKING * dearest / rhs[r]
    tolerance = 1e-11 * (dearest if rhs[size - 1] < 0.0 else largest)
    for step in range(MAX_STEPS):
        for r in range(size):
            duals[r] = 0.0
            for s in range(size):
                duals[r] += costs[s] * inverse[s, r]
        entering, best = count + size, tolerance
        for r in range(size):
            if -duals[r] > best:
                entering, best = count + r, -duals[r]
        for k in range(count):
            most = worths[k]  # only the last row may have negative entries
            if rhs[size - 1] < 0.0:
                most -= rows[k, size - 1] * duals[size - 1]
            if most > best:
                reduced = worths[k]
                for r in range(size):
                    reduced -= rows[k, r] * duals[r]
                if reduced > best:
                    entering, best = k, reduced
                    if step > 400:
                        break
        if entering == count + size:
            total = 0.0
            for r in range(size):
                total += max(0.0, duals[r]) * rhs[r]
            return total
        leaving, ratio = -1, np.inf
        for r in range(size):
            direction[r] = inverse[r, entering - count] if entering >= count else 0.0
            if entering < count:
                for s in range(size):
                    direction[r] += inverse[r, s] * rows[entering, s]
            if direction[r] > 1e-12 and amounts[r] / direction[r] < ratio:
                leaving, ratio = r, amounts[r] / direction[r]
        if leaving < 0:
            return np.inf
        for r in range(size):
            amounts[r] = ratio if r == leaving else max(0.0, amounts[r] - ratio * direction[r])
        for s in range(size):
            inverse[leaving, s] /= direction[leaving]
        for r in range(size):
            if r != leaving and direction[r] != 0.0:
                for s in range(size):
                    inverse[r, s] -= direction[r] * inverse[leaving, s]
        basis[leaving] = entering if entering < count else -1 - (entering - count)
        costs[leaving] = worths[entering] if entering < count else 0.0
    return np.inf


@helper
def rows_of(unit, sizes):
    """Return the maximum number of rows in the linear program of a box."""
    return 3 + len(unit.passes) * max(len(unit.beside), 1 + len(LATER)) + sizes.classes


@helper
def middle(box, sizes):
    """Return the point at which to split a box, and whether to split its range of loads.

    The point is 0 if the box is too narrow to be split.
    """
    low, high = (box.low, box.high) if box.full else (sizes.base + box.low, sizes.base + box.high)
    if (
        not box.full
        and box.load_low >= 1.0
        and box.load_high > box.load_low * max(sizes.narrow, high / low)
    ):
        return np.sqrt(box.load_low * min(box.load_high, 4.0 * box.load_low)), True
    if not high > low * sizes.narrow or np.isinf(high):
        return 0.0, False
    return np.sqrt(low * high) - (0.0 if box.full else sizes.base), False


@kernel(
    "UniTuple(i8, 2)(Unit, const Option[::1], const f8[::1], i8, Sizes, const f8[::1], const"
    " f8[::1], b1, Box[::1], f8[::1], Column[::1], f8[:, ::1])",
    steps=lambda unit, options, *_: 12_000 * len(options) * (3 + len(unit.passes)),
)
def search(
    unit, options, trips, objective, sizes, prices, clients, every, boxes, bounds, columns, amounts
):
    """Find patterns of one side with the largest values, net of client prices.

    The search over boxes is best-first. `prices` contains the price of a client by option. The
    boxes in `boxes` together contain every pattern. They are followed by free entries, whose `high`
    is 0, for the halves of split boxes. `bounds` contains upper bounds on the net values in the
    boxes. A bound is recomputed only if the box may contain one of the best patterns. The patterns
    found are written to `columns`, and their clients by option to `amounts`. If `every` is true,
    the search continues until every box above the threshold is narrow. Return the number of
    patterns found, and the number of linear programs that were solved.

    The bound of the first pattern found is an upper bound on the net value of all patterns. If no
    pattern is found, the threshold is such a bound.
    """
    count, width = len(options), rows_of(unit, sizes)
    worths, priced = np.empty(count), np.empty(count)
    table, rhs = np.empty((count, width)), np.empty(width)
    basis, levels, duals = np.empty(width, np.int64), np.empty(width), np.empty(width)
    fresh = np.zeros(len(boxes), np.bool_)
    losses, numbers = np.empty(len(boxes)), np.empty(len(boxes), np.int64)
    used = queued = found = looked = 0
    while used < len(boxes) and boxes[used].high > 0.0:
        if bounds[used] > sizes.threshold:
            queued = push(losses, numbers, queued, -bounds[used], used)
        used += 1
    while queued > 0 and (every or found < len(columns)):
        top, best = -losses[0], numbers[0]
        queued = pop(losses, numbers, queued)
        at, loads = middle(boxes[best], sizes) if fresh[best] else (0.0, False)
        if at > 0.0 and used < len(boxes):
            boxes[used], bounds[used], fresh[best] = boxes[best], top, False
            if loads:
                boxes[best].load_high, boxes[used].load_low = at, at
            else:
                boxes[best].high, boxes[used].low = at, at
            for half in (best, used):
                queued = push(losses, numbers, queued, -top, half)
            used += 1
            continue
        if fresh[best] and found == len(columns):
            continue
        looked += 1
        size = limits(
            unit, options, trips, objective, clients, sizes, boxes[best], worths, table, rhs
        )
        bound = most = -np.inf
        for k in range(count):
            priced[k] = worths[k] - prices[k]
            most = max(most, priced[k])
        if size > 0:
            bound = simplex(priced, table[:, :size], rhs, size, basis, levels, duals)
        own = own_worth(unit, objective, boxes[best])
        if fresh[best]:
            one = columns[found]
            one.place, one.bound, one.worth = best, top, own
            for r in range(size):
                if basis[r] >= 0 and levels[r] > 1e-12:
                    amounts[found, basis[r]] = levels[r]
                    one.worth += levels[r] * worths[basis[r]]
            found += 1
            continue
        bound += own
        if rhs[size - 1] >= 0.0:  # every pattern has at least one client
            bound += min(0.0, most)
        bounds[best] = min(top, bound - (sizes.full if is_full(boxes[best]) else 0.0))
        fresh[best] = True
        if bounds[best] > sizes.threshold:
            queued = push(losses, numbers, queued, -bounds[best], best)
    return found, looked


@kernel(
    "Tuple((i8, f8))(Unit, const Option[::1], const f8[::1], i8, Sizes, const f8[::1], Box,"
    " f8[::1], f8[:, ::1], f8[::1])"
)
def program(unit, options, trips, objective, sizes, clients, box, worths, table, rhs):
    """Write the linear program of a box, with the values and the coefficients of all options.

    Return the number of rows, and an upper bound on the unit's own contribution to the objective.
    """
    size = limits(unit, options, trips, objective, clients, sizes, box, worths, table, rhs)
    return size, own_worth(unit, objective, box)
