"""Base classes of the methods for `placement`, and functions that they share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from specopt.models.errors import Infeasible, OutOfTime, OutOfWork
from specopt.models.named import NamedRates
from specopt.models.placement.plan import PlacementPlan
from specopt.models.placement.problem import PlacementProblem
from specopt.models.result import Conflict, Termination
from specopt.solvers.budget import Budget
from specopt.solvers.method import Method, Outcome
from specopt.solvers.placement.first_plans import first_plans
from specopt.solvers.placement.patterns import SLACK, Pattern, count_exact, plan_of, sign
from specopt.solvers.placement.prepare import Prepared, most_options, prepare

PLAIN_OPTIONS, PLAIN_PATTERNS = 20_000, 3000
"""Limits for building a simple plan without compiled code.

The first is the maximum number of options. The second is the maximum number of patterns that the
judge evaluates.
"""

PLAIN_SECONDS = 0.02
"""Time in seconds after which the search for simple plans stops once a plan has been found."""


@dataclass(frozen=True)
class PlacementMethod(Method):
    """Base class of the methods for `placement`.

    If the time limit is reached before a method finds a plan, a simple plan is returned instead.
    """

    solves = PlacementProblem
    size_unit = "patterns of units"

    def size_of(self, problem: PlacementProblem) -> float:
        """Return the number of patterns of a problem, or infinity above the method's limit."""
        return count_exact(problem, self.max_size or 0)

    def bytes_needed(self, problem: PlacementProblem) -> dict[str, float]:
        """Return the required memory in bytes by purpose, including the memory for the options."""
        return super().bytes_needed(problem) | {"options of clients": 500.0 * most_options(problem)}

    def run(self, problem: PlacementProblem, budget: Budget) -> Outcome:
        """Search for a plan, and record a simple plan if none is found in time."""
        try:
            return self.search(problem, budget)
        except OutOfTime:
            if budget.incumbent is None:
                self.offer_plain(problem, budget)
            raise

    def search(self, problem: PlacementProblem, budget: Budget) -> Outcome:
        """Search for a plan within the limits of `budget`.

        Subclasses implement this method instead of `run`.
        """
        raise NotImplementedError

    def plans(self, prepared: Prepared) -> Iterator[Counter[Pattern]]:
        """Yield plans that are quick to build, as patterns with numbers of units."""
        return first_plans(prepared)

    def offer_plain(self, problem: PlacementProblem, budget: Budget) -> None:
        """Record the best simple plan found within `PLAIN_SECONDS`.

        If no plan is found in that time, the first plan that is found later is recorded. If the
        kernel is not compiled yet, the judge evaluates the patterns.
        """
        from specopt.solvers.placement.kernels.units import values

        prepared, until = prepare(plain(problem)), budget.seconds + PLAIN_SECONDS
        if not values.is_ready:
            prepared = replace(prepared, kernels=None)
        prepared.budget.work_left = PLAIN_PATTERNS
        found: list[tuple[float, PlacementPlan]] = []
        with suppress(OutOfWork):
            for used in self.plans(prepared):
                plan = plan_of(prepared, used)
                if used and not problem.violations(plan):
                    found.append((sign(problem) * problem.evaluate(plan).objective, plan))
                # A value of 0 means that some class has no client.
                if budget.seconds >= until and any(value for value, _ in found):
                    break
        if found:
            budget.offer(max(found, key=itemgetter(0))[1])
        else:
            offer(prepared, {}, budget)


@dataclass(frozen=True)
class SimplePlacement(PlacementMethod):
    """Base class of the methods that build a single plan by a simple rule."""

    may_fail = True

    @abstractmethod
    def patterns(self, prepared: Prepared) -> Counter[Pattern]:
        """Return patterns that serve all clients, or an empty counter if the rule fails."""

    def plans(self, prepared: Prepared) -> Iterator[Counter[Pattern]]:
        """Yield the patterns of the method's only plan."""
        yield self.patterns(prepared)

    def search(self, problem: PlacementProblem, budget: Budget) -> Outcome:
        """Record the plan that consists of the method's patterns, and return the outcome."""
        prepared = prepare(problem, budget=budget)
        plan = offer(prepared, self.patterns(prepared), budget)
        said = self.guarantee if plan is None else None
        return Outcome(plan=plan, termination=Termination.EXHAUSTED, explanation=said)


def plain(problem: PlacementProblem) -> PlacementProblem:
    """Return a problem for which a plan can be built quickly.

    Drafts are removed from the problem if it has too many options. Otherwise, it is unchanged.
    """
    if most_options(problem) <= PLAIN_OPTIONS:
        return problem
    classes = (
        replace(one, acceptance=NamedRates({}), device_seconds_per_token=None)
        for one in problem.classes
    )
    return replace(problem, drafters=(), draft_pools=(), classes=tuple(classes))


def offer(prepared: Prepared, used: Mapping[Pattern, int], budget: Budget) -> PlacementPlan | None:
    """Record and return a plan in which `used` gives the number of units for each pattern.

    Return None if that plan is infeasible.
    """
    if not used and prepared.problem.objective != "capacity":
        return None
    plan = plan_of(prepared, used)
    if prepared.problem.violations(plan):
        return None
    budget.offer(plan)
    return plan


def why_infeasible(prepared: Prepared, served: float = math.inf) -> Infeasible:
    """Return an exception that explains why no plan exists.

    The message names a class with clients that cannot be served even alone, and the violated
    constraint. If there is no such class, the message reports `served`, the maximum number of
    clients that can be served. It is infinity if the number is unknown.
    """
    problem, kernels = prepared.problem, prepared.kernels
    for c, of in enumerate(problem.classes):
        best, where = -1.0, ""
        least, room = math.inf, 0.0
        for side in prepared.sides:
            name, has = problem.verifiers[side.verifier].name, max(0.0, side.unit.room)
            for option in side.by_class[c]:
                needed = side.unit.kv * float(side.options[option]["memory"])
                if needed > has * (1.0 + SLACK):
                    least, room = min(least, needed), max(room, has)
                    continue
                alone = np.array([option]), np.ones(1, np.int64), math.inf
                unit = side.unit, side.options, prepared.trips
                worth = kernels.value(*unit, kernels.GOODPUT, *alone)
                rate = float(worth / side.options[option]["weight"])
                if rate > best:
                    best, where = rate, f"place {side.ways[option].place}, verifier {name!r}"
        if best < 0.0:
            return Infeasible(
                f"class {of.name!r}: the cache of one client takes at least {least:.4g} bytes,"
                f" but a unit has at most {room:.4g} bytes in addition to the weights",
                [Conflict(constraint="memory", index=c, needs=least, has=room)],
            )
        if best < of.min_tokens_per_second * (1.0 - SLACK):
            return Infeasible(
                f"class {of.name!r}: the minimum is {of.min_tokens_per_second:g} tokens per second,"
                f" but one client alone gets at most {best:.4g} ({where})",
                [Conflict(constraint="rate", index=c, needs=of.min_tokens_per_second, has=best)],
            )
    units, clients = sum(one.units for one in problem.verifiers), sum(prepared.clients)
    limits = "within memory and minimum rates"
    if served == math.inf:
        return Infeasible(f"{units} units cannot serve {clients} clients {limits}")
    most = math.floor(served)
    return Infeasible(
        f"{units} units serve at most {most} of {clients} clients {limits}",
        [Conflict(constraint="units", needs=float(clients), has=float(most))],
    )
