"""Plans from the master program: round units first, then clients, and correct missing or surplus
clients.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, pairwise

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.solvers.placement.choice import Frame
from specopt.solvers.placement.patterns import Pattern, valued
from specopt.solvers.placement.prepare import Prepared, Side
from specopt.solvers.placement.relaxation import Column, Duals, Relaxation

OPTIONS = 6
"""Options of a class in a box, beside those that patterns use, at most."""


def whole_units(
    relaxation: Relaxation, duals: Duals, boxes: int, seconds: float
) -> Counter[Pattern]:
    """Return patterns of units that nearly serve all clients.

    An integer program says how many units run in each of the `boxes` best boxes, and how many
    clients (a real number) each option serves there. The units of a box then share them evenly,
    rounded down.
    """
    prepared = relaxation.prepared
    frame = Frame.of(prepared)
    program = frame.program
    placed: list[tuple[int, int, dict[int, int]]] = []
    for side, options, worths, table, rhs, own in _groups(relaxation, duals, boxes):
        rows = program.rows([-math.inf] * len(rhs), [0.0] * len(rhs))
        held = {row: -most for row, most in zip(rows, rhs.tolist(), strict=True)}
        held[frame.verifiers[prepared.sides[side].verifier]] = 1.0
        units, mine = program.column(own, held, whole=True), {}
        for option, worth, work in zip(
            options.tolist(), worths.tolist(), table.tolist(), strict=True
        ):
            way = prepared.sides[side].ways[option]
            held = {row: value for row, value in zip(rows, work, strict=True) if value} | {
                frame.classes[way.cls]: 1.0
            }
            if way.draft >= 0:
                held[frame.drafts[way.draft]] = 1.0
            mine[option] = program.column(worth, held)
        placed.append((side, units, mine))
    scale = max(map(abs, program.costs), default=1.0) or 1.0
    if prepared.problem.objective != "capacity":
        for row in frame.classes:
            program.column(-relaxation.penalty, {row: 1.0})
    solved = program.solve(seconds, gap=1e-3, unit=scale)
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
    """Give the linear programs of the best boxes, with the options that matter there."""
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
    for key in sorted(best, key=best.__getitem__, reverse=True)[:boxes]:
        index, box = key
        side = prepared.sides[index]
        sizes = relaxation.sizes(covers[index], 0.0, duals[1])
        worths, table, rhs = (
            np.empty(len(side.options)),
            np.empty((len(side.options), relaxation.width)),
            np.empty(relaxation.width),
        )
        record = np.array([box], kernels.Box)[0]
        clients = np.array(prepared.clients, np.float64)
        size, own = kernels.program(
            side.unit,
            side.options,
            prepared.trips,
            prepared.objective,
            sizes,
            clients,
            record,
            worths,
            table,
            rhs,
        )
        if size < 0:
            continue
        kept = set(used[key])
        gains = worths - duals[0][side.options["cls"]]
        for c in range(len(prepared.clients)):
            mine = np.flatnonzero((side.options["cls"] == c) & np.isfinite(worths))
            kept.update(mine[np.argsort(-gains[mine])[:OPTIONS]].tolist())
        chosen = np.array(sorted(kept), np.int64)
        yield index, chosen, worths[chosen], table[chosen, :size], rhs[:size].copy(), own


def nearest(relaxation: Relaxation) -> list[Pattern]:
    """Return the patterns of the master program with whole clients: rounded down, to the nearest,
    and up.
    """
    found: dict[Pattern, None] = {}
    for column in relaxation.columns:
        for rounding in (math.floor, round, math.ceil):
            counts = ((option, rounding(round(amount, 6))) for option, amount in column.amounts)
            if entries := tuple((option, count) for option, count in counts if count):
                found[Pattern(column.side, entries)] = None
    return valued(relaxation.prepared, list(found)) if found else []


def spread(shared: dict[int, int], units: int) -> Counter[tuple[tuple[int, int], ...]]:
    """Return the entries of so many units that share clients of some options evenly."""
    options = sorted(shared)
    first = [0, *accumulate(shared[option] for option in options)]
    found: Counter[tuple[tuple[int, int], ...]] = Counter()
    for unit, other in pairwise(
        sorted({0, units, *(before % units for before in first)}) if units else ()
    ):
        numbers = (
            shared[option] // units + ((unit - before) % units < shared[option] % units)
            for option, before in zip(options, first, strict=False)
        )
        if entries := tuple(
            (option, number) for option, number in zip(options, numbers, strict=True) if number
        ):
            found[entries] += other - unit
    return found


class Filling:
    """Adds or removes clients of units at the lowest cost, and stores the best move of each unit.

    Parameters
    ----------
    prepared
        The problem.
    """

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.best: dict[tuple[Pattern | int, int, int], tuple[float, Pattern] | None] = {}

    def move(self, now: Counter[Pattern], cls: int, step: int) -> int:
        """Make the best move of one unit, or of one more; by one client where none can make it by
        more.

        step: clients of the class that are added, or taken away where it is below 0. Returns what
        was, or 0.
        """
        used: Counter[int] = Counter()
        moves: list[tuple[float, Pattern | None, Pattern]] = []
        for one, number in now.items():
            used[self.prepared.sides[one.side].verifier] += number
            if best := self._best(one, cls, step):
                moves.append((best[0], one, best[1]))
        for v, verifier in enumerate(self.prepared.problem.verifiers):
            if step > 0 and used[v] < verifier.units and (best := self._best(v, cls, step)):
                moves.append((best[0], None, best[1]))
        if not moves:
            return self.move(now, cls, step // abs(step)) if abs(step) > 1 else 0
        _, before, after = max(moves, key=lambda one: one[0])
        now.update({after: 1} if after.entries else {})
        if before is not None:
            now[before] -= 1
            if not now[before]:
                del now[before]
        return step

    def _best(self, unit: Pattern | int, cls: int, step: int) -> tuple[float, Pattern] | None:
        """Return the gain and the pattern of the best move of a unit; of an unused unit of a
        verifier, by its index.
        """
        key = (unit, cls, step)
        if key not in self.best:
            self.prepared.budget.check()
            tried = valued(self.prepared, list(self._offers(unit, cls, step)))
            before = unit.value if isinstance(unit, Pattern) else 0.0
            one = max(tried, key=lambda one: one.value, default=None)
            self.best[key] = None if one is None else (one.value - before, one)
            if (
                isinstance(unit, Pattern)
                and step < 0
                and unit.entries == ((unit.entries[0][0], -step),)
            ):
                of = self.prepared.sides[unit.side].ways[unit.entries[0][0]]
                if of.cls == cls:
                    self.best[key] = -before, Pattern(unit.side, ())
        return self.best[key]

    @staticmethod
    def _options(side: Side, cls: int) -> Iterator[int]:
        return (option for option in side.by_class[cls] if side.ways[option].draft < 0)

    def _offers(self, unit: Pattern | int, cls: int, step: int) -> Iterator[Pattern]:
        if isinstance(unit, int):
            for index, side in enumerate(self.prepared.sides):
                if side.verifier == unit:
                    yield from (
                        Pattern(index, ((option, step),)) for option in self._options(side, cls)
                    )
            return
        counts = dict(unit.entries)
        for option in self._options(self.prepared.sides[unit.side], cls):
            count = counts.get(option, 0) + step
            rest = {o: q for o, q in counts.items() if o != option} | (
                {option: count} if count > 0 else {}
            )
            if count >= 0 and rest:
                yield Pattern(unit.side, tuple(sorted(rest.items())))


def completed(prepared: Prepared, units: Counter[Pattern]) -> Counter[Pattern]:
    """Return patterns of units that serve every client once, from some that nearly do; none where
    that fails.

    Clients that are too many are taken away, and those that are left out are added, where it costs
    least.
    """
    now: Counter[Pattern] = Counter()
    for one, number in units.items():
        while not (
            fine := valued(prepared, [one])
        ):  # a client less of what there is most of, until memory holds them
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
            # steps with two leading bits are few, so that the best moves by each are found once
            step = abs(left) // 16
            bits = max(0, step.bit_length() - 2)
            size = max(1, step >> bits << bits)
            moved = filling.move(now, c, size if left > 0 else -size)
            if not moved:
                return Counter()
            left -= moved
    return now


def improved(prepared: Prepared, pattern: Pattern) -> Pattern:
    """Return the best pattern that serves the same clients, found by changing the option of one
    entry at a time.
    """
    best = pattern
    while True:
        prepared.budget.check()
        side, tried = prepared.sides[best.side], []
        taken = {option for option, _ in best.entries}
        for at, (option, count) in enumerate(best.entries):
            way = side.ways[option]
            for other in side.by_class[way.cls]:
                if side.ways[other].draft == way.draft and other not in taken:
                    entries = (*best.entries[:at], (other, count), *best.entries[at + 1 :])
                    tried.append(Pattern(best.side, tuple(sorted(entries))))
        top = max(valued(prepared, tried), key=lambda one: one.value, default=best)
        if top.value <= best.value + 1e-12 * abs(best.value):
            return best
        best = top
