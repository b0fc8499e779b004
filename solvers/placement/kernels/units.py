"""Units of `placement`: how a unit runs, what an option can reach in a box of periods, and the
pricing of patterns.

An option is a class with one way to draft. Where drafting takes a range of times, as in a draft
unit of which only a range of sizes is known, an option has a least and a largest time. The bounds
hold for all times between.
"""

import math

import numpy as np

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
"""One way for a class to draft with one verifier: `soonest` and `latest` are the times of drafting
after a miss.
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
"""A verifier's unit with what drafts beside it: rows of passes, bytes that are left for caches,
bytes per token.
"""

GOODPUT, FAIR, CAPACITY, COST, ENERGY = range(5)


@helper
def largest(passes, b, m, c):
    """Return the largest of some pieces."""
    total = 0.0
    for i in range(len(passes)):
        total = max(total, passes[i, 0] + passes[i, 1] * b + passes[i, 2] * m + passes[i, 3] * c)
    return total


@helper
def pass_seconds(unit, b, m, c):
    """Return B of a batch."""
    total = largest(unit.passes, b, m, c)
    draft = largest(unit.beside, b, b * unit.length if unit.parallel else b, c)
    return (total + (draft if unit.parallel else unit.length * draft)) / unit.open_share


@helper
def passes_per_round(option, trips, t, drafting):
    """Return n(t)."""
    hits = misses = 0.0
    for k in range(option.first, option.first + option.trips):
        sent = trips[k] + option.sent
        misses += np.ceil((sent + drafting) / t * (1.0 - EDGE))
        if option.held > 0.0:
            hits += np.ceil((sent + max(0.0, option.ahead - (t + sent))) / t * (1.0 - EDGE))
    return 1.0 + (option.held * hits + (1.0 - option.held) * misses) / option.trips


@helper
def mean_away(option, trips, t, drafting):
    """Return the mean time away at a period."""
    hits = misses = 0.0
    for k in range(option.first, option.first + option.trips):
        sent = trips[k] + option.sent
        misses += sent + drafting
        hits += sent + max(0.0, option.ahead - (t + sent))
    return (option.held * hits + (1.0 - option.held) * misses) / option.trips


@helper
def device_seconds(option, trips, t, drafting):
    """Return the seconds of drafting per round."""
    lost = 0.0
    for k in range(option.first, option.first + option.trips):
        lost += min(option.ahead, t + trips[k] + option.sent)
    return option.held * option.ahead + (1.0 - option.held) * (lost / option.trips + drafting)


@helper
def run(unit, options, trips, chosen, counts, cycles, periods):
    """Write the cycle and the period of every entry; return whether batches are full, and the busy
    share.

    chosen, counts: options and clients of the entries. Times of drafting are the latest.
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
    """Return what a client adds to the objective, as something to maximise."""
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
    """Return what a unit that serves so many clients of some options adds to the objective; -inf if
    it may not.

    It is to be maximised: prices and watts count as negative. slack: relative, of memory and least
    rates.
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
    """Write the values of many units: row r has its first `sizes[r]` entries."""
    for r in range(len(sizes)):
        out[r] = value(
            unit, options, trips, objective, chosen[r, : sizes[r]], counts[r, : sizes[r]], slack
        )


Box = rows("Box", full="b1", low="f8", high="f8", load_low="f8", load_high="f8")
"""Full batches: periods from low to high. Else: sums of waits from low to high, and loads."""

Column = rows("Column", place="i8", count="i8", worth="f8", bound="f8")
"""A fractional pattern: the place of its box, its entries, its worth; `bound`: less the prices of
its clients.
"""

Sizes = record("Sizes", base="f8", floor="f8", narrow="f8", threshold="f8", full="f8", classes="i8")
"""base, floor: least time from pass to pass without waits, least pass. narrow: ratio of ends below
which a box is not split. threshold: bounds below it are not looked at. full: price of a unit that
is always busy. classes: rows for clients of every class, or 0."""


@helper
def reach(unit, options, trips, objective, sizes, box, worths, shares, sums):
    """Write what each option can add to the objective in a box, the least of its load, and the
    least and the largest of its waits.

    What cannot reach its least rate is worth -inf.
    """
    for k in range(len(options)):
        o = options[k]
        sums[:, k] = 0.0
        if box.full:
            # periods are the longest that solve t = B(t): no batch that would form at a longer one
            # is late for it
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
            else:  # batches are below 1 in the end, though the load is not
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
"""What lacks in a row costs so many times more than an option is worth at most: the larger, the
closer a bound may be, and the larger the errors of rounding.
"""

MAX_STEPS = 4000
"""Maximum number of steps of the simplex method in a box; a box that takes more has no bound."""

LATER = (1.15, 1.4, 2.0, 4.0)
"""Longer periods at which a pattern whose period is in a box must be done in time, too, as factors
of its high end.
"""


@helper
def pass_rows(unit, options, period, shares, rows, rhs, size):
    """Write a row for every pair of pieces: what passes within a period hold; return the number of
    rows.
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
    """Write the linear program of a box: the worths of options, and the rows of memory, time and
    clients of every class. Return the number of rows; -1 if no pattern is in the box.
    """
    shares, sums = np.empty(len(options)), np.empty((2, len(options)))
    reach(unit, options, trips, objective, sizes, box, worths, shares, sums)
    size = 1
    rhs[0] = unit.room * (1.0 + 1e-9)
    rows[:, 0] = unit.kv * options["memory"]
    if box.full:
        size = pass_rows(unit, options, box.high, shares, rows, rhs, size)
        if not len(unit.beside):
            later = np.empty(len(options))
            for factor in LATER:
                for k in range(len(options)):
                    later[k] = 1.0 / passes_per_round(
                        options[k], trips, factor * box.high, options[k].latest
                    )
                size = pass_rows(unit, options, factor * box.high, later, rows, rhs, size)
    elif len(unit.beside):  # only one client alone leaves batches that are not full
        rhs[size] = 1.0
        rows[:, size] = 1.0
        size += 1
    else:
        rhs[size] = box.high * (1.0 + 1e-12)
        rows[:, size] = sums[0]
        rhs[size + 1] = box.load_high * (1.0 + 1e-12) if box.load_low < 1.0 else 1.0
        rows[:, size + 1] = shares
        size += 2
    for c in range(sizes.classes):
        rhs[size] = clients[c]
        for k in range(len(options)):
            rows[k, size] = 1.0 if options[k].cls == c else 0.0
        size += 1
    if rhs[:size].min() < 0.0:
        return -1
    if not box.full and len(unit.beside) == 0 and box.low > 0.0:  # the only row below 0, the last
        rhs[size] = -box.low * (1.0 - 1e-12)
        rows[:, size] = -sums[1]
        size += 1
    return size


@helper
def is_full(box):
    """Return whether a unit in a box is busy all the time."""
    return box.full or box.load_low >= 1.0


@helper
def own_worth(unit, objective, box):
    """Return what a unit in a box adds to the objective beside its clients, at most."""
    if objective == COST:
        return -unit.price
    if objective == ENERGY:
        return -unit.busy if is_full(box) else -unit.idle
    return 0.0


@helper
def simplex(worths, rows, rhs, size, basis, amounts, duals):
    """Maximise worths x over rows x <= rhs and x >= 0 by the primal simplex method.

    What a row below 0 lacks costs `LACKING` times more than any option is worth: a bound in any
    case, and the optimum where that is dear enough. rows: by option. basis, amounts: written, an
    entry per row, -1 - r for the slack of row r or for what it lacks. Ties go to the first after
    many steps. Returns the optimum; infinity without one.
    """
    count = len(rows)
    inverse, costs, direction = np.eye(size), np.zeros(size), np.zeros(size)
    largest = dearest = 0.0
    for k in range(count):
        largest = max(largest, worths[k])
        if worths[k] > -np.inf:
            dearest = max(dearest, abs(worths[k]))
    for r in range(size):
        basis[r], amounts[r] = -1 - r, abs(rhs[r])
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
            most = worths[k]  # no other row has entries below 0
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
        inverse[leaving] /= direction[leaving]
        for r in range(size):
            if r != leaving and direction[r] != 0.0:
                inverse[r] -= direction[r] * inverse[leaving]
        basis[leaving] = entering if entering < count else -1 - (entering - count)
        costs[leaving] = worths[entering] if entering < count else 0.0
    return np.inf


@helper
def middle(box, sizes):
    """Return where to split a box, and whether its loads are split; 0 where it is narrow."""
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
    "UniTuple(f8, 2)(Unit, const Option[::1], const f8[::1], i8, Sizes, const f8[::1], const"
    " f8[::1], Box[::1], Column[::1], i8[:, ::1], f8[:, ::1])",
    steps=lambda unit, options, *_: 12_000 * len(options) * (3 + len(unit.passes)),
)
def search(
    unit, options, trips, objective, sizes, prices, clients, boxes, columns, chosen, amounts
):
    """Find the patterns of one side that are worth most at prices of their clients, best box first.

    prices: by option. boxes: hold every pattern; room behind them for halves, `boxes[k].low` below
    0: none there. columns, chosen, amounts: written, those found. Returns the bound on all
    patterns, and how many were found.
    """
    count, width = len(options), chosen.shape[1]
    worths, table, rhs = np.empty(count), np.empty((count, width)), np.empty(width)
    basis, levels, duals = np.empty(width, np.int64), np.empty(width), np.empty(width)
    bounds = np.full(len(boxes), -np.inf)
    used, found, fresh = 0, 0, 0
    while used < len(boxes) and boxes[used].low >= 0.0:
        used += 1
    while True:
        for k in range(fresh, used):
            size = limits(
                unit, options, trips, objective, clients, sizes, boxes[k], worths, table, rhs
            )
            if size > 0:
                worths -= prices
                bounds[k] = simplex(worths, table[:, :size], rhs, size, basis, levels, duals)
                bounds[k] += own_worth(unit, objective, boxes[k])
                if is_full(boxes[k]):
                    bounds[k] -= sizes.full
        fresh = used
        best = np.argmax(bounds)
        top = bounds[best]
        if not top > sizes.threshold or found == len(columns):
            return max(top, sizes.threshold) if found == 0 else max(top, columns[0].bound), float(
                found
            )
        at, loads = middle(boxes[best], sizes)
        if at > 0.0 and used + 1 < len(boxes):
            boxes[used] = boxes[best]
            if loads:
                boxes[best].load_high, boxes[used].load_low = at, at
            else:
                boxes[best].high, boxes[used].low = at, at
            boxes[used + 1] = boxes[best]
            bounds[best] = -np.inf
            used += 2
            continue
        size = limits(
            unit, options, trips, objective, clients, sizes, boxes[best], worths, table, rhs
        )
        priced = worths - prices
        simplex(priced, table[:, :size], rhs, size, basis, levels, duals)
        one = columns[found]
        one.place, one.bound, one.count = best, top, 0
        one.worth = own_worth(unit, objective, boxes[best])
        for r in range(size):
            if basis[r] >= 0 and levels[r] > 1e-12:
                chosen[found, one.count], amounts[found, one.count] = basis[r], levels[r]
                one.worth += levels[r] * worths[basis[r]]
                one.count += 1
        bounds[best] = -np.inf
        found += 1


@kernel(
    "Tuple((i8, f8))(Unit, const Option[::1], const f8[::1], i8, Sizes, const f8[::1], Box,"
    " f8[::1], f8[:, ::1], f8[::1])"
)
def program(unit, options, trips, objective, sizes, clients, box, worths, table, rhs):
    """Write the linear program of a box: worths and rows of options; return its rows, and the worth
    of the unit.
    """
    size = limits(unit, options, trips, objective, clients, sizes, box, worths, table, rhs)
    return size, own_worth(unit, objective, box)
