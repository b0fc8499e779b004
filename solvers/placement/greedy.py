"""Clients one by one, each to the unit and option that gain most."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from specopt.models.placement import PlacementProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.placement.method import PlacementMethod, offer
from specopt.solvers.placement.patterns import Pattern
from specopt.solvers.placement.prepare import Prepared, prepare
from specopt.solvers.placement.rounding import Filling

STEPS = 300
"""Into how many groups clients are cut at most, each of which goes to one unit."""


@dataclass(frozen=True)
class GreedyPlacement(PlacementMethod):
    """One client at a time (beyond `STEPS` clients, as many as make so many steps), drafting units aside."""

    name = "greedy"
    may_fail = True
    source = "own"
    guarantee = "none"
    complexity = "O(clients x units x options) evaluations of a unit"

    def run(self, problem: PlacementProblem, budget: Budget) -> Outcome:
        """Place clients class by class, by weight."""
        budget.load("placement.units")
        prepared = prepare(problem, check=budget.check)
        plan = offer(prepared, greedy(prepared, budget), budget)
        why = None if plan is not None else "clients were left when no unit could take one more"
        return Outcome(plan=plan, explanation=why)


def greedy(prepared: Prepared, budget: Budget) -> Counter[Pattern]:
    """Return patterns that serve all clients; none where clients are left.

    For capacity clients are placed while any fit, the class first of which the smallest share is placed.
    """
    total, free = sum(prepared.clients), prepared.problem.objective == "capacity"
    size = max(1, total // STEPS)
    placed = [0] * len(prepared.clients)
    units: Counter[Pattern] = Counter()
    filling = Filling(prepared)
    while True:
        budget.check()
        open_classes = [c for c, clients in enumerate(prepared.clients) if free or placed[c] < clients]
        if not open_classes:
            return units
        c = min(open_classes, key=lambda c: placed[c] / prepared.clients[c])
        step = size if free else min(size, prepared.clients[c] - placed[c])
        if not filling.move(units, c, step):
            step = 1
            if not filling.move(units, c, step):
                return units if free else Counter()
        placed[c] += step
