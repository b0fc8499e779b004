"""Code shared by the methods for `serving-latency` problems: applicability conditions, initial
plans, certified bounds, and the choice of the best mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Condition, Outcome, only
from specopt.solvers.serving_latency.bound import lower_bound, seconds_to_bound, summed_bound
from specopt.solvers.serving_latency.prepare import Prepared, prepare
from specopt.solvers.serving_method import (
    GIVEN,
    MAX_LENGTHS,
    ONE_RATE,
    ServingMethod,
    able,
    quick_batches,
)

_SECONDS_PER_RUN = 1e-7  # to judge one decoding step of a plan
_PART_OF_TIME = 0.1  # bounds of trivial plans are omitted above this fraction of the time left

PIPELINED = only("mechanism", "pipelined", "the mechanism {}")
CONSERVATIVE = only("output_lengths", "conservative", "{} output lengths")
LINES = Condition(
    "lines or pieces as runtimes",
    lambda method, problem: f"measured passes as {problem.tables[0]}" if problem.tables else None,
)
MEAN = only("rounds", "mean", 'the rounds "{}"')
ALIKE = Condition(
    'the rounds "slowest" of conservative output lengths',
    lambda method, problem: (
        'the rounds "slowest" of known output lengths'
        if problem.rounds == "slowest" and problem.output_lengths != "conservative"
        else None
    ),
)
KNOWN = only("output_lengths", "known", "{} output lengths")


@dataclass(frozen=True)
class ServingLatencyMethod(ServingMethod):
    """Base class of the methods for `serving-latency` problems."""

    solves = ServingLatencyProblem
    serves: ClassVar[tuple[Condition, ...]] = (ONE_RATE, GIVEN)
    forms: ClassVar[tuple[Condition, ...]] = (LINES, MEAN)

    @classmethod
    def conditions(cls) -> tuple[Condition, ...]:
        """Return all conditions that a problem must satisfy. The first of them concern how tasks
        are served.
        """
        return (*cls.serves, *cls.forms, *super().conditions())

    def bytes_needed(self, problem: ServingLatencyProblem) -> dict[str, float]:
        """Return how many bytes the method needs. They include tables of stage times, if the
        problem requires such tables.
        """
        needed = super().bytes_needed(problem)
        if problem.rounds == "mean" and not problem.tables:
            return needed
        steps = problem.longest_output * (problem.max_speculation_length or 1)
        return needed | {"input_tokens": 16.0 * problem.tasks**2 * steps}

    def seconds_needed(self, problem: ServingLatencyProblem) -> dict[str, float]:
        """Estimate how long it takes to evaluate one plan, in seconds.

        The estimate is proportional to the number of decoding steps, summed over tasks or over
        batches, at the longest speculation length.
        """
        steps = np.stack(problem.scenarios) / problem.tokens_per_step(
            problem.max_speculation_length or 0
        )
        runs = float(steps.sum())
        if _SECONDS_PER_RUN * runs > 1.0:
            runs = float(steps.max(axis=1).sum()) * self.fewest_batches(prepare(problem))
        return {"tasks times decoding steps": _SECONDS_PER_RUN * runs}

    def fewest_batches(self, prepared: Prepared) -> float:
        """Return an approximate lower bound on the number of batches in this method's plans."""
        return prepared.tasks / prepared.widest


def begun(
    problem: ServingLatencyProblem, budget: Budget, *, is_small: bool = False
) -> list[Prepared]:
    """Prepare the problem for each mechanism that has a feasible plan. Record an initial plan for
    each of them in the budget, and return the prepared problems.

    If `is_small` is true, `offer_first_plan` evaluates only one plan per mechanism.
    """
    options = able(problem, Prepared)
    for prepared in options:
        offer_first_plan(prepared, budget, is_small=is_small)
    return options


def offer_first_plan(prepared: Prepared, budget: Budget, *, is_small: bool = False) -> None:
    """Record the best trivial plan in the budget. A trivial plan uses either batches as large as
    memory allows or one batch per task.

    If `is_small` is true, the caller will soon compare all plans of a small problem, so only the
    first trivial plan is evaluated.

    Each trivial plan has a single speculation length. The first plan is always evaluated, and later
    plans are skipped if their bounds rule them out. Without a bound, speculation lengths increase
    while the latency stays close to the best. The search ends early if a bound would take too long.
    """
    batches = quick_batches(prepared)
    if batches is None:
        return
    best = math.inf
    for alone in (False, True):
        for length in prepared.lengths[:MAX_LENGTHS]:
            bound = 0.0
            if best < math.inf and prepared.problem is budget.problem:
                if seconds_to_bound(prepared, length) > _PART_OF_TIME * budget.remaining:
                    return
                bound = prepared.communication_seconds + summed_bound(prepared, length, alone)
            if bound < best:
                chosen = [[k] for k in range(prepared.tasks)] if alone else batches
                found = budget.offer(prepared.plan(chosen, length))
                if bound == 0.0 and found > 1.1 * best:
                    break
                best = min(best, found)
            if is_small:
                return


def certify(prepared: Prepared, plan: ServingLatencyPlan, budget: Budget) -> Outcome:
    """Record a heuristic's plan in the budget. Return it with a lower bound for all plans under the
    same mechanism.
    """
    budget.offer(plan)
    return Outcome(plan=plan, bound=lower_bound(prepared, budget))


def best_of_mechanisms(
    problem: ServingLatencyProblem, budget: Budget, solve: Callable[[Prepared], Outcome]
) -> Outcome:
    """Solve each of the problem's mechanisms separately, and return the best plan with a bound that
    holds for all of them.
    """
    options = begun(problem, budget)
    found = []
    for prepared in options:
        outcome = solve(prepared)
        assert isinstance(outcome.plan, ServingLatencyPlan)
        # evaluated now, while the budget still holds the last plan's evaluation
        found.append((budget.evaluate(outcome.plan).objective, outcome))
    _, best = min(found, key=lambda one: one[0])
    bounds = [outcome.bound for _, outcome in found if outcome.bound is not None]
    return replace(best, bound=min(bounds) if len(bounds) == len(found) else None)
