"""Rounding of fractional solutions of the master program to plans.

The numbers of units are rounded first, and the numbers of clients second. Finally, surplus clients
are removed and missing clients are added.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import accumulate, pairwise

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.solvers.placement.choice import Frame
from specopt.solvers.placement.patterns import Pattern, valued
from specopt.solvers.placement.prepare import Prepared
from specopt.solvers.placement.relaxation import Column, Duals, Relaxation

OPTIONS = 6
"""Maximum number of additional options per class and box.

They are added to the options that the patterns of the box use.
"""

MAX_MOVES = 250
"""Maximum number of moves that are tried to improve a rounded plan.

If it is larger, plans may be better, and plans of large problems are found later.
"""


def whole_units(
    relaxation: Relaxation, duals: Duals, boxes: int, seconds: float
) -> Counter[Pattern]:
    """Return patterns with integer numbers of units that together serve nearly all clients.

    An integer program decides how many units run in each of the `boxes` best boxes. It also decides
    how many clients each option serves there, which may be fractional numbers. The number of
    clients of each option is rounded down, and the clients are distributed evenly over the units of
    the box.

    If `boxes` is 0, which requires the objective "capacity", every unit of the boxes in use has
    integer numbers of clients instead. Together, the units serve the share of the bound. The result
    is empty if this is impossible.
    """
    prepared = relaxation.prepared
    frame = Frame.of(prepared)
    program = frame.program
    if not boxes:
        for row, clients in zip(frame.classes, prepared.clients, strict=True):
            program.lower[row] = math.ceil(min(relaxation.bound, 1e9) * clients * (1.0 - 1e-9))
    placed: list[tuple[int, int, dict[int, int]]] = []
    for side, options, worths, table, rhs, own in _groups(relaxation, duals, boxes):
        verifier = prepared.sides[side].verifier
        for most in [math.inf] if boxes else [1.0] * prepared.problem.verifiers[verifier].units:
            rows = program.rows([-math.inf] * len(rhs), [0.0] * len(rhs))
            held = {row: -room for row, room in zip(rows, rhs.tolist(), strict=True)}
            held[frame.verifiers[verifier]] = 1.0
            units, mine = program.column(own, held, most, whole=True), {}
            for option, worth, work in zip(
                options.tolist(), worths.tolist(), table.tolist(), strict=True
            ):
                held = {row: value for row, value in zip(rows, work, strict=True) if value}
                held |= frame.clients(prepared.sides[side], [(option, 1.0)])
                mine[option] = program.column(worth, held, whole=not boxes)
            placed.append((side, units, mine))
    scale = max(map(abs, program.costs), default=1.0) or 1.0
    if prepared.problem.objective != "capacity":
        for row in frame.classes:
            program.column(-relaxation.penalty, {row: 1.0})
    solved = program.solve(seconds, gap=1e-3, unit=scale, work=math.inf if boxes else seconds)
    prepared.budget.spend(solved.work)
    found, patterns = solved.amounts, Counter[Pattern]()
    if found is None:
        return patterns
    for side, units, mine in placed:
        shared = {option: math.floor(found[at] + 1e-6) for option, at in mine.items()}
        for entries, number in spread(shared, round(found[units])).items():
            patterns[Pattern(side, entries)] += number
    return patterns


Key = tuple[int, tuple[bool, float, float, float, float]]


def _groups(
    relaxation: Relaxation, duals: Duals, boxes: int
) -> Iterator[tuple[int, Ints, Floats, Floats, Floats, float]]:
    """Yield the linear programs of the best boxes.

    Each program is restricted to the most valuable options and the options of its patterns. The
    largest number in every row is between 1/2 and 1, because the tolerances of HiGHS are absolute.
    """
    prepared, kernels = relaxation.prepared, relaxation.prepared.kernels
    covers = {cover.side: cover for cover in relaxation.covers}
    of_sides = [relaxation.prices(side, duals) for side in prepared.sides]

    def priced(column: Column) -> float:
        verifier, prices = prepared.sides[column.side].verifier, of_sides[column.side]
        served = sum(amount * float(prices[option]) for option, amount in column.amounts)
        return column.value - served - relaxation.unit_price(verifier, duals[1], column.is_full)

    best: dict[Key, float] = {}
    used: dict[Key, set[int]] = {}
    for column in relaxation.columns:
        key = (column.side, column.box)
        best[key] = max(best.get(key, -math.inf), priced(column))
        used.setdefault(key, set()).update(option for option, _ in column.amounts)
    in_use = {(column.side, column.box) for column, _ in relaxation.used}
    for key in sorted(best, key=lambda key: (key in in_use, best[key]), reverse=True)[
        : boxes or len(in_use)
    ]:
        index, box = key
        side = prepared.sides[index]
        sizes = relaxation.sizes(covers[index], 0.0, duals[1])
        worths, rhs = np.empty(len(side.options)), np.empty(kernels.rows_of(side.unit, sizes))
        table = np.empty((len(worths), len(rhs)))
        record, clients = np.array([box], kernels.Box)[0], np.array(prepared.clients, np.float64)
        size, own = kernels.program(
            *(side.unit, side.options, prepared.trips, prepared.objective, sizes, clients),
            *(record, worths, table, rhs),
        )
        if size < 0:
            continue
        kept = set(used[key])
        gains = worths - duals[0][side.options["cls"]]
        for c in range(len(prepared.clients)):
            mine = np.flatnonzero((side.options["cls"] == c) & np.isfinite(worths))
            kept.update(mine[np.argsort(-gains[mine])[: OPTIONS if boxes else 1]].tolist())
        chosen = np.array(sorted(kept), np.int64)
        work, limits = table[chosen, :size], rhs[:size]
        scale = np.abs(work).max(axis=0, initial=0.0) + np.abs(limits)
        scale[scale == 0.0] = 1.0
        yield index, chosen, worths[chosen], work / scale, limits / scale, own


def spread(shared: dict[int, int], units: int) -> Counter[tuple[tuple[int, int], ...]]:
    """Return the entries of units that share the clients of each option evenly."""
    found = Counter[tuple[tuple[int, int], ...]]()
    if not units:
        return found
    held = sorted(shared.items())
    first = [0, *accumulate(clients for _, clients in held)]
    for unit, other in pairwise(sorted({0, units, *(before % units for before in first)})):
        counts = (
            (option, clients // units + ((unit - before) % units < clients % units))
            for (option, clients), before in zip(held, first, strict=False)
        )
        if entries := tuple((option, count) for option, count in counts if count):
            found[entries] += other - unit
    return found


class Filling:
    """Moves that add clients to units, or remove clients, with the best effect on the value.

    The best move of each unit is cached.

    Parameters
    ----------
    prepared
        Arrays of the problem.
    """

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.best = cache(self._best)

    def move(self, now: Counter[Pattern], cls: int, step: int) -> int:
        """Add clients of one class to the unit whose value increases most, or remove clients.

        `step` is the number of clients to add, or minus the number to remove. Unused units are
        considered as well. If no unit can change by `step`, a single client is added or removed.
        Return the change in the number of clients, which is 0 if no move exists.
        """
        sides, used = self.prepared.sides, Counter[int]()
        for one, number in now.items():
            used[sides[one.side].verifier] += number
        unused = [
            Pattern(index, ())
            for index, side in enumerate(sides)
            if step > 0
            and used[side.verifier] < self.prepared.problem.verifiers[side.verifier].units
        ]
        moves = [(one, after) for one in (*now, *unused) if (after := self.best(one, cls, step))]
        if not moves:
            return self.move(now, cls, step // abs(step)) if abs(step) > 1 else 0
        before, after = max(moves, key=lambda move: move[1].value - move[0].value)
        now.update({after: 1} if after.entries else {})
        if before.entries:
            now[before] -= 1
            if not now[before]:
                del now[before]
        return step

    def _best(self, unit: Pattern, cls: int, step: int) -> Pattern | None:
        """Return the pattern of a unit after its best move, or None if no move is possible."""
        self.prepared.budget.check()
        side, counts, offers = self.prepared.sides[unit.side], dict(unit.entries), []
        (first, clients), *others = unit.entries or ((-1, 0),)
        if step < 0 and not others and clients == -step and side.ways[first].cls == cls:
            return Pattern(unit.side, ())
        for option in side.by_class[cls]:
            count = counts.get(option, 0) + step
            if count >= 0 and side.ways[option].draft < 0:
                held = sorted((counts | {option: count}).items())
                offers.append(Pattern(unit.side, tuple(one for one in held if one[1])))
        if offers and not offers[0].entries:
            return offers[0]
        return max(valued(self.prepared, offers), key=lambda one: one.value, default=None)


def completed(prepared: Prepared, units: Counter[Pattern]) -> Counter[Pattern]:
    """Adjust patterns that serve nearly all clients so that every client is served exactly once.

    Surplus clients are removed and missing clients are added at the lowest loss of value. The
    result is empty if this fails.
    """
    now: Counter[Pattern] = Counter()
    for one, number in units.items():
        # Drop clients of the option with the most clients until the pattern is feasible.
        while not (fine := valued(prepared, [one])):
            most = max(one.entries, key=lambda entry: entry[1])
            entries = tuple((o, q - (o == most[0])) for o, q in one.entries if q > (o == most[0]))
            if not entries:
                break
            one = Pattern(one.side, entries)
        now.update(dict.fromkeys(fine, number))
    if prepared.problem.objective == "capacity":
        return now
    filling = Filling(prepared)
    for c, clients in enumerate(prepared.clients):
        left = clients - sum(one.served(prepared)[c] * number for one, number in now.items())
        while left:
            prepared.budget.check()
            # Steps are rounded to two leading bits: few distinct steps occur, so most best moves
            # come from the cache.
            step = abs(left) // 16
            bits = max(0, step.bit_length() - 2)
            size = max(1, step >> bits << bits)
            moved = filling.move(now, c, size if left > 0 else -size)
            if not moved:
                return Counter()
            left -= moved
    return now


def polished(prepared: Prepared, units: Counter[Pattern]) -> Counter[Pattern]:
    """Move clients to other units and options as long as this increases the total value.

    In each step, clients of one class are removed from the unit with the lowest loss, and added to
    the unit with the largest gain. At most `MAX_MOVES` such moves are tried.
    """
    filling, best, last, tried = Filling(prepared), units, Counter[Pattern](), 0
    while best != last:
        last = best
        for c, step in enumerate(prepared.clients):
            while step and tried < MAX_MOVES:
                tried += 1
                now = best.copy()
                moved = filling.move(now, c, -step) == -step and filling.move(now, c, step) == step
                if moved and total(now) > total(best) + 1e-12 * abs(total(best)):
                    best = now
                else:
                    step //= 2
    return best


def total(units: Counter[Pattern]) -> float:
    """Return the total value of units."""
    return math.fsum(one.value * number for one, number in units.items())
