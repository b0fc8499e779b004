"""Simple initial plans, which draft in a single place or assign clients one at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from specopt.models.errors import OutOfTime, OutOfWork
from specopt.models.placement.plan import PLACES, Place
from specopt.solvers.placement.patterns import Pattern, valued
from specopt.solvers.placement.prepare import Prepared
from specopt.solvers.placement.rounding import Filling

CLIENTS = 2**60
"""Number of clients assumed for a class without a limit.

This number exceeds the number of clients that fit in the memory of all units.
"""

UNITS = 1000
"""Maximum total number of units for which `shared` builds a plan."""

STEPS = 300
"""Maximum number of steps in which `one_by_one` assigns the clients.

If there are more clients, each step assigns a group of clients.
"""


def first_plans(prepared: Prepared) -> Iterator[Counter[Pattern]]:
    """Yield simple plans, starting with the plan that is quickest to build.

    A plan is given as patterns with numbers of units. If there are many clients, the plan that
    assigns clients one at a time is omitted.
    """
    yield shared(prepared)
    for place in PLACES[:3]:
        if used := filled(prepared, place):
            yield used
    if sum(prepared.clients) <= STEPS and (used := one_by_one(prepared)):
        yield used


def shared(prepared: Prepared) -> Counter[Pattern]:
    """Return patterns without drafts in which the clients are divided evenly among all units.

    The result is empty if there are more than `UNITS` units.
    """
    units = [0, *accumulate(one.units for one in prepared.problem.verifiers)]
    ends, found = [0, *accumulate(prepared.clients)], Counter[Pattern]()
    for index, side in enumerate(prepared.sides if units[-1] <= UNITS else ()):
        alone = [(option, way.cls) for option, way in enumerate(side.ways) if way.place == "none"]
        for unit in range(*units[side.verifier : side.verifier + 2]):
            low, high = (ends[-1] * at // units[-1] for at in (unit, unit + 1))
            entries = ((option, min(high, ends[c + 1]) - max(low, ends[c])) for option, c in alone)
            if held := tuple(one for one in entries if one[1] > 0):
                found[Pattern(index, held)] += 1
    return found


def one_by_one(prepared: Prepared) -> Counter[Pattern]:
    """Assign each client to the unit and option that increase the objective most.

    The next client always belongs to the class with the smallest share of assigned clients. The
    result is empty if some client cannot be assigned. For the objective "capacity", clients are
    assigned until the next client does not fit on any unit.
    """
    total, free = sum(prepared.clients), prepared.problem.objective == "capacity"
    size = max(1, total // STEPS)
    placed = [0] * len(prepared.clients)
    units: Counter[Pattern] = Counter()
    filling = Filling(prepared)
    while True:
        try:
            prepared.budget.check()
        except (OutOfTime, OutOfWork):
            if free and units:
                return units
            raise
        open_classes = [
            c for c, clients in enumerate(prepared.clients) if free or placed[c] < clients
        ]
        if not open_classes:
            return units
        c = min(open_classes, key=lambda c: placed[c] / prepared.clients[c])
        step = size if free else min(size, prepared.clients[c] - placed[c])
        moved = filling.move(units, c, step)
        if not moved:
            return units if free else Counter()
        placed[c] += moved


def filled(prepared: Prepared, place: Place) -> Counter[Pattern]:
    """Return patterns that serve all clients with drafts made in one place.

    Every unit serves a single class and is filled as far as possible. Classes are assigned in order
    of decreasing weight, and each class uses the verifier and option with the largest value per
    client on a full unit. Ties go to the verifier with the lowest busy power. For the objective
    "capacity", the classes share the units equally. The result is empty if some clients cannot be
    served.
    """
    problem = prepared.problem
    left = [one.units for one in problem.verifiers]
    units: Counter[Pattern] = Counter()
    share = problem.objective == "capacity"
    for c in sorted(range(len(problem.classes)), key=lambda c: -problem.classes[c].weight):
        clients = CLIENTS if share else prepared.clients[c]
        full = [
            one
            for index, side in enumerate(prepared.sides)
            for option in side.by_class[c]
            if side.ways[option].place == place
            and (one := _largest(prepared, index, option, clients))
        ]
        full.sort(
            key=lambda one: (
                -one.value / one.entries[0][1],
                prepared.sides[one.side].unit.busy,
                -one.entries[0][1],
            )
        )
        room = [u // len(problem.classes) if share else u for u in left]
        for one in full:
            verifier = prepared.sides[one.side].verifier
            option, most = one.entries[0]
            while clients and room[verifier]:
                part = one if clients >= most else _largest(prepared, one.side, option, clients)
                if part is None:
                    break
                number = min(room[verifier], clients // most) or 1
                units[part] += number
                clients -= number * part.entries[0][1]
                room[verifier] -= number
                left[verifier] -= number
        if clients and not share:
            return Counter()
    return units


def _largest(prepared: Prepared, index: int, option: int, clients: int) -> Pattern | None:
    """Return a pattern with as many clients of one option as memory and the minimum rate allow.

    The number of clients is found by bisection. Rates are not monotone in this number, so a larger
    feasible number may exist.
    """
    prepared.budget.check()
    side = prepared.sides[index]
    fits = int(max(0.0, side.unit.room) / (side.unit.kv * side.options[option]["memory"]))
    low, best, high = 0, None, min(fits, clients)
    middle = high
    while low < high:
        found = valued(prepared, [Pattern(index, ((option, middle),))])
        if found:
            low, best = middle, found[0]
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return best
