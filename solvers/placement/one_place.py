"""One place for all drafts: what the simple methods share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from specopt.models.placement import PlacementProblem
from specopt.models.placement_plan import Place
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.placement.method import PlacementMethod, offer
from specopt.solvers.placement.patterns import Pattern, valued
from specopt.solvers.placement.prepare import Prepared, prepare

MOST = 2**40
"""Clients of a unit where a problem does not limit them: more than memory holds."""


@dataclass(frozen=True)
class OnePlace(PlacementMethod):
    """Base of the methods that draft in one place."""

    place: ClassVar[Place]
    may_fail = True
    source = "own; what deployments without a planner do"
    guarantee = "none; no plan where some class has no such place, or units are too few"
    complexity = "O(options x log clients) evaluations of a unit"

    def run(self, problem: PlacementProblem, budget: Budget) -> Outcome:
        """Fill units with one class after the other."""
        budget.load("placement.units")
        prepared = prepare(problem)
        plan = offer(prepared, filled(prepared, self.place, budget), budget)
        why = None if plan is not None else f"place {self.place!r} alone does not serve all clients this way"
        return Outcome(plan=plan, explanation=why)


def filled(prepared: Prepared, place: Place, budget: Budget) -> list[Pattern] | None:
    """Return patterns that serve all clients from one place, each class alone on units filled as far as they go.

    Classes come in order of weight; each takes the verifier and option that are worth most per client on a full unit.
    None where clients are left; for capacity the classes share the units as far as they go.
    """
    problem = prepared.problem
    left = [one.units for one in problem.verifiers]
    units: list[Pattern] = []
    share = problem.objective == "capacity"
    for c in sorted(range(len(problem.classes)), key=lambda c: -problem.classes[c].weight):
        full = list(_full_units(prepared, place, c, budget))
        full.sort(key=lambda one: (-one.value / one.entries[0][1], -one.entries[0][1]))
        clients = sum(one.units for one in problem.verifiers) * MOST if share else prepared.clients[c]
        room = [u // len(problem.classes) if share else u for u in left]
        for one in full:
            verifier = prepared.sides[one.side].verifier
            while clients and room[verifier]:
                option, most = one.entries[0]
                part = _largest(prepared, one.side, option, min(clients, most), budget)
                if part is None:
                    break
                units.append(part)
                clients -= part.entries[0][1]
                room[verifier] -= 1
                left[verifier] -= 1
        if clients and not share:
            return None
    return units


def _full_units(prepared: Prepared, place: Place, c: int, budget: Budget) -> Iterator[Pattern]:
    for index, side in enumerate(prepared.sides):
        for option, way in enumerate(side.ways):
            if way.cls == c and way.place == place:
                fits = int(max(0.0, side.unit.room) / (side.unit.kv * side.options[option]["memory"]))
                capacity = prepared.problem.objective == "capacity"
                one = _largest(prepared, index, option, fits if capacity else min(fits, prepared.clients[c]), budget)
                if one is not None:
                    yield one


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
