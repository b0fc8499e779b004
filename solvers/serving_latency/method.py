"""What the methods of serving latency share: which problems they take, and how mechanisms are tried in turn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from specopt.models.serving_latency import MECHANISMS, ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Method, Outcome
from specopt.solvers.serving_latency.prepare import Prepared, offer_quick_plan, prepare


@dataclass(frozen=True)
class Found:
    """What a method found under one mechanism: a plan and, if it has one, a bound on every plan."""

    plan: ServingLatencyPlan
    bound: float | None = None
    stats: dict[str, object] | None = None


@dataclass(frozen=True)
class ServingLatencyMethod(Method):
    """Base of the methods for `serving-latency`; subclasses say what they take.

    Class data
    ----------
    mechanisms
        Mechanisms of the problems that the method takes ("any": tries each of the problem's mechanisms).
    output_lengths
        Whether it takes conservative or known output lengths.
    """

    solves: ClassVar[type[ServingLatencyProblem]] = ServingLatencyProblem
    mechanisms: ClassVar[tuple[str, ...]] = (*MECHANISMS, "any")
    output_lengths: ClassVar[tuple[str, ...]] = ("conservative", "known")

    def refusal(self, problem: ServingLatencyProblem) -> str | None:
        """Return why this method cannot take the problem, or None."""
        if problem.mechanism not in self.mechanisms:
            return f"its mechanism is {problem.mechanism!r}, the method takes {' or '.join(self.mechanisms)}"
        if problem.output_lengths not in self.output_lengths:
            return f"its output lengths are {problem.output_lengths}, the method takes {self.output_lengths[0]} ones"
        if self.max_size is not None and problem.tasks > self.max_size:
            return f"it has {problem.tasks} tasks, the method takes at most {self.max_size}"
        return None


@dataclass(frozen=True)
class PerMechanism(ServingLatencyMethod):
    """Base of the methods that solve one mechanism at a time and keep the best."""

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Solve every mechanism that the problem allows and keep the best plan and the least bound."""
        return best_of_mechanisms(problem, budget, lambda prepared: self.find(prepared, budget))

    @abstractmethod
    def find(self, prepared: Prepared, budget: Budget) -> Found:
        """Solve under one mechanism; every task fits alone."""


def best_of_mechanisms(problem: ServingLatencyProblem, budget: Budget, find: Callable[[Prepared], Found]) -> Outcome:
    """Return the best plan over the problem's mechanisms, with a bound that holds for all of them."""
    options = [prepare(problem, mechanism) for mechanism in problem.mechanisms]
    misfits = [prepared.misfit() for prepared in options]
    options = [prepared for prepared, misfit in zip(options, misfits, strict=True) if misfit is None]
    if not options:
        return Outcome.infeasible(next(misfit for misfit in misfits if misfit is not None))
    for prepared in options:
        offer_quick_plan(prepared, budget)
    found = [find(prepared) for prepared in options]
    best = min(found, key=lambda one: problem.evaluate(one.plan).objective)
    bounds = [one.bound for one in found if one.bound is not None]
    return Outcome(
        plan=best.plan,
        bound=min(bounds) if len(bounds) == len(found) else None,
        stats=dict(best.stats or {}),
    )
