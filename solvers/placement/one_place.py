"""One place for all drafts: what the simple methods share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from specopt.models.placement_plan import Place
from specopt.solvers.budget import Budget
from specopt.solvers.placement.method import SimplePlacement
from specopt.solvers.placement.patterns import Pattern, valued
from specopt.solvers.placement.prepare import Prepared

MOST = 2**40
"""Clients of a unit where a problem does not limit them: more than memory holds."""


@dataclass(frozen=True)
class OnePlace(SimplePlacement):
    """Base of the methods that draft in one place."""

    place: ClassVar[Place]
    source = "own; what deployments without a planner do"
    guarantee = "none; no plan where some class has no such place, or units are too few"
    complexity = "O(options x log clients) evaluations of a unit"

    def patterns(self, prepared: Prepared, budget: Budget) -> Counter[Pattern]:
        """Fill units with one class after the other."""
        return filled(prepared, self.place, budget)


def filled(prepared: Prepared, place: Place, budget: Budget) -> Counter[Pattern]:
    """Return patterns that serve all clients from one place, each class alone on units filled as far as they go.

    Classes come in order of weight; each takes the verifier and option that are worth most per client on a full unit.
    Empty where clients are left; for capacity the classes share the units as far as they go.
    """
    problem = prepared.problem
    left = [one.units for one in problem.verifiers]
    units: Counter[Pattern] = Counter()
    share = problem.objective == "capacity"
    for c in sorted(range(len(problem.classes)), key=lambda c: -problem.classes[c].weight):
        clients = sum(one.units for one in problem.verifiers) * MOST if share else prepared.clients[c]
        full = [
            one
            for index, side in enumerate(prepared.sides)
            for option in side.by_class[c]
            if side.ways[option].place == place and (one := _full_unit(prepared, index, option, clients, budget))
        ]
        full.sort(key=lambda one: (-one.value / one.entries[0][1], -one.entries[0][1]))
        room = [u // len(problem.classes) if share else u for u in left]
        for one in full:
            verifier = prepared.sides[one.side].verifier
            option, most = one.entries[0]
            while clients and room[verifier]:
                part = one if clients >= most else _largest(prepared, one.side, option, clients, budget)
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


def _full_unit(prepared: Prepared, index: int, option: int, clients: int, budget: Budget) -> Pattern | None:
    side = prepared.sides[index]
    fits = int(max(0.0, side.unit.room) / (side.unit.kv * side.options[option]["memory"]))
    return _largest(prepared, index, option, min(fits, clients), budget)


def _largest(prepared: Prepared, side: int, option: int, most: int, budget: Budget) -> Pattern | None:
    """Return the largest number of clients of an option alone on a unit that keeps the least rate, by halving.

    Rates are not monotone in the number of clients, so that a larger one may exist.
    """
    budget.check()
    low, best, high = 0, None, most
    while low < high:
        middle = high if best is None and high == most else (low + high + 1) // 2
        found = valued(prepared, [Pattern(side, ((option, middle),))])
        if found:
            low, best = middle, found[0]
        else:
            high = middle - 1
    return best
