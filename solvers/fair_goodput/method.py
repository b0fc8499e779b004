"""Base class and shared functions of the methods for `fair-goodput`, and the first plan."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.region import Region, plan_of
from specopt.solvers.fair_goodput.rounds import constant, plain_allocations, rates_of, useful_drafts
from specopt.solvers.method import Condition, Method, Outcome, at_most, only

PER_ROUND = only("per", "round", "rates per {}")
PER_SECOND = only("per", "second", "rates per {}")
WEIGHTED_SUM = only("fairness", 0.0, "fairness {:g}")
NO_MIN_RATES = Condition(
    "no minimum rates",
    lambda method, problem: None if problem.min_goodput is None else "minimum rates",
)


def drafts_at_most(limit: int) -> Condition:
    """Return the condition that limits the draft tokens of all clients if rates are per second."""

    def drafts(method: Method, problem: FairGoodputProblem) -> int:
        return int(useful_drafts(problem).sum()) if problem.per == "second" else 0

    return at_most(limit, "draft tokens over all clients if rates are per second", drafts)


@dataclass(frozen=True)
class FairGoodputMethod(Method):
    """Base of the methods for `fair-goodput`."""

    solves = FairGoodputProblem
    size_unit = "clients"
    bytes_per_number = 256.0

    def size_of(self, problem: FairGoodputProblem) -> float:
        """Return the number of clients."""
        return problem.clients


def admitted(problem: FairGoodputProblem, outcome: Outcome) -> Outcome:
    """Return an outcome, without the plan and the bound if the judge rejects the plan.

    A plan that misses minimum rates by the judge's tolerance, 1e-9, may be accepted or rejected,
    depending on rounding.
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
    """Offer the best plain plan.

    If a region is given and there are minimum rates, offer the region's plan with the fewest drafts
    instead. Plans that miss a minimum rate are not offered.
    """
    is_free = problem.min_goodput is None
    if is_free or region is None:
        allocations = plain_allocations(problem)
        allocations.sort(key=lambda drafts: -problem.log_common_rate(rates_of(problem, drafts)))
        plans = (constant(problem, drafts) for drafts in allocations)
    else:
        plans = iter([plan_of(problem, region.least)])
    fit = next((plan for plan in plans if is_free or not problem.violations(plan)), None)
    if fit is not None:
        budget.offer(fit)
