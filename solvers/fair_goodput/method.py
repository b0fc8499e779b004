"""The base class of the methods for `fair-goodput`, shared functions, and the initial plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.region import Region, plan_of
from specopt.solvers.fair_goodput.rounds import constant, plain_allocations, rates_of, useful_drafts
from specopt.solvers.method import Condition, Method, Outcome, at_most, only

FEW = 100
"""Maximum number of clients for which the exact methods do not record a plan before their search.

The search then takes milliseconds, and a plan is recorded even if the search is interrupted. A
larger value delays the first plan of a solve, and the first plan after an interruption.
"""

PER_ROUND = only("per", "round", "rates per {}")
PER_SECOND = only("per", "second", "rates per {}")
WEIGHTED_SUM = only("fairness", 0.0, "fairness {:g}")
NO_MIN_RATES = Condition(
    "no minimum rates",
    lambda method, problem: None if problem.min_goodput is None else "minimum rates",
)


def drafts_at_most(limit: int) -> Condition:
    """Return a condition that limits the total number of draft tokens if rates are per second."""

    def drafts(method: Method, problem: FairGoodputProblem) -> int:
        return int(useful_drafts(problem).sum()) if problem.per == "second" else 0

    return at_most(limit, "draft tokens over all clients if rates are per second", drafts)


@dataclass(frozen=True)
class FairGoodputMethod(Method):
    """Base class of the methods for `fair-goodput`."""

    solves = FairGoodputProblem
    size_unit = "clients"
    bytes_per_number = 256.0

    def size_of(self, problem: FairGoodputProblem) -> float:
        """Return the number of clients."""
        return problem.clients


def admitted(problem: FairGoodputProblem, outcome: Outcome) -> Outcome:
    """Return `outcome` unchanged if the judge accepts its plan.

    Otherwise, the plan and the bound are removed. The judge's tolerance is 1e-9. A plan that misses
    a minimum rate by about this tolerance may be accepted or rejected, depending on rounding.
    """
    plan = outcome.plan
    if (
        problem.min_goodput is None
        or not isinstance(plan, FairGoodputPlan)
        or not problem.violations(plan)
    ):
        return outcome
    explanation = (
        "min_goodput: the minimum rates are at the limit of what is attainable, within the"
        " tolerance, so that no plan is certain to meet them; lower them slightly"
    )
    return Outcome(plan=None, stats=outcome.stats, explanation=explanation)


def offer_first_plan(
    problem: FairGoodputProblem, budget: Budget, region: Region | None = None
) -> None:
    """Record an initial plan in the budget.

    It is the best of the constant plans that use one of the `plain_allocations`. If there are
    minimum rates and `region` is specified, the region's plan with the fewest drafts is used
    instead. Plans that miss a minimum rate are not recorded.
    """
    is_free = problem.min_goodput is None
    plans: Iterable[FairGoodputPlan]
    if is_free or region is None:
        ranked = sorted(
            plain_allocations(problem),
            key=lambda drafts: -problem.log_common_rate(rates_of(problem, drafts)),
        )
        plans = (constant(problem, drafts) for drafts in ranked)
    else:
        plans = [plan_of(problem, region.least)]
    for plan in plans:
        if is_free or not problem.violations(plan):
            budget.offer(plan)
            return
