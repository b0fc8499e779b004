"""Clients one by one, each to the unit and option that gain most."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from specopt.solvers.budget import Budget
from specopt.solvers.placement.method import SimplePlacement
from specopt.solvers.placement.patterns import Pattern
from specopt.solvers.placement.prepare import Prepared
from specopt.solvers.placement.rounding import Filling

STEPS = 300
"""Into how many groups clients are cut at most, each of which goes to one unit."""


@dataclass(frozen=True)
class GreedyPlacement(SimplePlacement):
    """One client at a time (beyond `STEPS` clients, as many as make so many steps), drafting units aside."""

    name = "greedy"
    source = "own"
    guarantee = "none; no plan where clients are left when no unit can take one more"
    complexity = "O(clients x units x options) evaluations of a unit"

    def patterns(self, prepared: Prepared, budget: Budget) -> Counter[Pattern]:
        """Place clients class by class, by weight.

        For capacity clients are placed while any fit, the class first of which the smallest share is placed.
        """
        total, free = sum(prepared.clients), prepared.problem.objective == "capacity"
        size = max(1, total // STEPS)
        placed = [0] * len(prepared.clients)
        units: Counter[Pattern] = Counter()
        filling = Filling(prepared, budget.check)
        while True:
            budget.check()
            open_classes = [c for c, clients in enumerate(prepared.clients) if free or placed[c] < clients]
            if not open_classes:
                return units
            c = min(open_classes, key=lambda c: placed[c] / prepared.clients[c])
            step = size if free else min(size, prepared.clients[c] - placed[c])
            moved = filling.move(units, c, step)
            if not moved:
                return units if free else Counter()
            placed[c] += moved
