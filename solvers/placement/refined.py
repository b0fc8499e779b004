"""The exact method: patterns of units, all of them where there are few, else priced in ever smaller boxes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from specopt.models.placement import PlacementProblem
from specopt.models.placement_plan import PLACES
from specopt.models.result import Termination
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.placement.choice import choose
from specopt.solvers.placement.greedy import greedy
from specopt.solvers.placement.method import PlacementMethod, offer, sign, why_infeasible
from specopt.solvers.placement.one_place import filled
from specopt.solvers.placement.patterns import all_patterns, count_all, undominated, valued
from specopt.solvers.placement.prepare import OBJECTIVES, Prepared, prepare
from specopt.solvers.placement.relaxation import Relaxation
from specopt.solvers.placement.rounding import completed, improved, whole_units

FEW_PATTERNS = 60_000
"""Patterns up to which all are listed: listing and choosing among them takes some seconds."""

NARROW = tuple(1.0 + width for width in (0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10))
"""Ratios of the ends of boxes in which patterns are priced, round after round."""

FEW_CLIENTS = 300
"""Clients up to which placing them one by one takes no time to speak of."""

SECONDS_PER_PLAN = 5.0
"""Of the integer program that looks for whole units, at most."""


@dataclass(frozen=True)
class Refined(PlacementMethod):
    """Column generation over patterns of units, by boxes of periods; all patterns where these are few.

    Few patterns: an integer program over all of them, of which the best with the same clients counts. Else the bound is
    that of fractional patterns, each bounded in a box of periods (or of waits) that gets smaller round by round; plans
    are whole units and whole clients near the fractional ones.
    """

    name: ClassVar[str] = "refined"
    source: ClassVar[str] = "own; Dantzig-Wolfe decomposition by patterns, Lagrangian bounds"
    guarantee: ClassVar[str] = "a bound; optimal where patterns are few, else within the gap of fractional patterns"
    complexity: ClassVar[str] = "patterns in all, or sides x boxes x options per pricing"

    def run(self, problem: PlacementProblem, budget: Budget) -> Outcome:
        """List patterns, or price them."""
        budget.load("placement.units")
        prepared = prepare(problem)
        if count_all(prepared, FEW_PATTERNS) <= FEW_PATTERNS:
            exact = prepare(problem, exact=True)
            if count_all(exact, FEW_PATTERNS) <= FEW_PATTERNS:
                return _listed(exact, budget)
        for units in (
            greedy(prepared, budget),
            *(filled(prepared, place, budget) for place in ("none", "device", "beside")),
        ):
            offer(prepared, units, budget)
        return _priced(prepared, budget)


def _listed(prepared: Prepared, budget: Budget) -> Outcome:
    """Choose among all patterns."""
    problem = prepared.problem
    for place in PLACES[:3]:
        offer(prepared, filled(prepared, place, budget), budget)
    patterns = undominated(prepared, valued(prepared, list(all_patterns(prepared))))
    budget.check()
    chosen = choose(prepared, patterns, budget.remaining)
    if chosen.used is None and chosen.bound == -math.inf:
        served = choose(prepared, [replace(one, value=0.0) for one in patterns], budget.remaining, penalty=1.0)
        raise why_infeasible(prepared, sum(prepared.clients) + served.bound)
    if chosen.used is not None:
        offer(prepared, [one for one, count in chosen.used for _ in range(count)], budget)
    budget.improve_bound(problem.widened(sign(problem) * chosen.bound, problem.scale))
    stats = {"patterns": len(patterns)}
    return Outcome(plan=budget.incumbent, bound=budget.bound, termination=_end(budget), stats=stats)


def _end(budget: Budget) -> Termination:
    return Termination.CONVERGED if budget.remaining > 0.0 else Termination.TIME_LIMIT


def _priced(prepared: Prepared, budget: Budget) -> Outcome:
    """Price patterns in ever smaller boxes, and round what the master program uses."""
    problem = prepared.problem
    relaxation, rounds = Relaxation(prepared), 0

    def check() -> None:
        if math.isfinite(relaxation.bound):
            bound = sign(problem) * relaxation.bound
            budget.improve_bound(problem.widened(bound, problem.scale))
        budget.check()

    for narrow in NARROW:
        relaxation.narrow, relaxation.columns = narrow, []
        duals = relaxation.solve(check, max(1e-11, 0.3 * (narrow - 1.0)))
        check()
        rounds += 1
        if relaxation.missing > 1e-6 and rounds == 1:
            _check_feasible(prepared, budget)
        units = whole_units(relaxation, duals, min(SECONDS_PER_PLAN, 0.3 * budget.remaining))
        whole = completed(prepared, units, budget.check)
        if offer(prepared, whole, budget) is not None and whole is not None:
            better = {one: improved(prepared, one, budget.check) for one in dict.fromkeys(whole)}
            offer(prepared, [better[one] for one in whole], budget)
        if budget.is_proven(1e-9):
            break
    stats = {"rounds": rounds, "patterns": len(relaxation.columns)}
    return Outcome(plan=budget.incumbent, bound=budget.bound, termination=Termination.CONVERGED, stats=stats)


def _check_feasible(prepared: Prepared, budget: Budget) -> None:
    """Raise if fractional patterns cannot serve all clients, whatever they are worth."""
    free = replace(prepared, objective=OBJECTIVES.index("capacity"))
    relaxation = Relaxation(free, narrow=1.01, penalty=1.0)
    relaxation.solve(budget.check, 1e-6)
    if relaxation.bound < -1e-6 * sum(prepared.clients):
        raise why_infeasible(prepared, sum(prepared.clients) + relaxation.bound)
