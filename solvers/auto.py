"""The method `auto`, which runs a portfolio of methods for a problem kind.

The methods in the portfolio are called members. Each member starts from the best plan and the best
bound that the preceding members have found.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from specopt.models.errors import OutOfMemory, OutOfTime, OutOfWork
from specopt.models.problem import Plan, Problem
from specopt.models.result import Termination
from specopt.solvers.budget import MEMORY_LIMIT, Budget
from specopt.solvers.method import Method, Outcome

SOON = 0.1
"""Remaining time, in seconds, at or below which no simple plan is recorded before the first member
runs.
"""

WORK_SECONDS = 20.0
"""Work limit of each member if there is no time limit, in approximate seconds on one core."""


@dataclass(frozen=True)
class Auto(Method):
    """Base class of the portfolio methods.

    The members run one at a time, until the plan and the bound agree or a limit is reached. Without
    a time limit, every member has a work limit on nodes, labels and steps, which makes the result
    independent of the machine's speed. With a time limit, only the clock is checked. With
    `time_limit=math.inf`, the members run until the plan is proven optimal.
    """

    name = "auto"
    source = "specopt; a portfolio"
    guarantee = "the best plan and the best bound of its members"
    complexity = "same as its members"
    supports_warm_start = True
    # The members in order; members that refuse a problem are skipped.
    order: ClassVar[tuple[type[Method], ...]] = ()
    # Substitutes: if all members refuse a problem, the first substitute that accepts it runs.
    instead: ClassVar[tuple[type[Method], ...]] = ()

    def members(self, problem: Any, memory_limit: float = MEMORY_LIMIT) -> tuple[Method, ...]:
        """Return the members that accept a problem, in the order in which they run. Later members
        do not run if the plan is already proven optimal.
        """
        return tuple(self._able(problem, memory_limit))

    def _able(self, problem: Any, memory_limit: float) -> Iterator[Method]:
        """Yield the members that accept a problem, or else the first substitute that accepts it.

        The generator is lazy, because querying all members takes as long as solving a small
        problem.
        """

        def able(kinds: tuple[type[Method], ...]) -> Iterator[Method]:
            members = (kind() for kind in kinds)
            return (one for one in members if one.refusal(problem, memory_limit) is None)

        none = True
        for member in able(self.order_for(problem)):
            none = False
            yield member
        if none:
            yield from islice(able(self.instead), 1)

    def order_for(self, problem: Any) -> tuple[type[Method], ...]:
        """Return the members in the order in which they should run for a problem."""
        return self.order

    def refusal(self, problem: Any, memory_limit: float = MEMORY_LIMIT) -> str | None:
        """Return the reason why no member can solve a problem, or None if some member can."""
        if next(self._able(problem, memory_limit), None) is not None:
            return None
        return (self.order + self.instead)[-1]().refusal(problem, memory_limit)

    def seconds_needed(self, problem: Any) -> dict[str, float]:
        """Return approximate lower bounds, in seconds, on the time during which the first member
        cannot be interrupted. Each key of the dictionary names the quantity that determines the
        time. The portfolio must accept the problem.
        """
        return next(self._able(problem, math.inf)).seconds_needed(problem)

    def repaired(self, problem: Any, plan: Any) -> Plan | None:
        """Adapt a plan for a similar problem to this problem, or return None if that is not
        possible.

        The adapted plan may be infeasible.
        """
        return None

    def plain_plans(self, problem: Any) -> Iterable[Plan]:
        """Return simple plans that are computed without compiled code.

        They provide a result if compilation uses up the time limit.
        """
        return ()

    def _offer_plain(self, problem: Problem, budget: Budget) -> None:
        budget.member = "plain"
        for plan in self.plain_plans(problem):
            budget.offer(plan)

    def run(self, problem: Problem, budget: Budget) -> Outcome:
        """Run the members one at a time, and return the best plan and the best bound that they
        find.
        """
        budget.offer_warm_start()
        if "numba" not in sys.modules and SOON < budget.remaining < math.inf:
            # The import of Numba alone may exceed the time limit.
            self._offer_plain(problem, budget)
        termination, stats, ran = Termination.CONVERGED, dict[str, Any](), list[str]()
        for member in self._able(problem, budget.memory_limit):
            budget.member = member.name
            budget.work_left = math.inf if budget.is_timed else WORK_SECONDS
            ran.append(member.name)
            try:
                outcome = member.run(problem, budget)
            except OutOfWork:
                termination = Termination.WORK_LIMIT
                continue
            except OutOfTime:
                if budget.preparing_seconds > 0.5 * budget.seconds:
                    self._offer_plain(problem, budget)
                raise
            except (OutOfMemory, MemoryError) as error:
                stats["out_of_memory"] = str(error)
                termination = Termination.INTERRUPTED
                continue
            if outcome.plan is not None:
                budget.offer(outcome.plan)
            if outcome.bound is not None and math.isfinite(outcome.bound):
                budget.improve_bound(outcome.bound)
            stats |= outcome.stats
            proven = budget.is_proven(self.tolerance)
            if proven or outcome.termination is not Termination.CONVERGED:
                termination = outcome.termination
            if proven:
                break
        stats["members"] = ran
        explanation = stats.get("out_of_memory") if budget.incumbent is None else None
        return Outcome.of(
            budget,
            termination=termination,
            stats=stats,
            explanation=explanation,
        )
