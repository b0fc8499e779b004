"""The method `tokens-per-round` for `fair-goodput`, which ignores how long each round takes.

It computes the fair optimum per round and evaluates it per second.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.dual import optimise
from specopt.solvers.fair_goodput.method import (
    NO_MIN_RATES,
    PER_SECOND,
    FairGoodputMethod,
    offer_first_plan,
)
from specopt.solvers.fair_goodput.region import plan_of, region_of
from specopt.solvers.fair_goodput.rounds import declared, in_time
from specopt.solvers.method import Condition, Method, Outcome


def _out_of_range(method: Method, problem: FairGoodputProblem) -> str | None:
    """Return the reason why the utility of rates per round cannot be computed, or None."""
    try:
        per_round(problem)
    except InvalidInput:
        return "a utility of rates per round outside the range of floating-point numbers"
    return None


@dataclass(frozen=True)
class TokensPerRound(FairGoodputMethod):
    """Use the per-round optimum of paper 5, although rates are counted per second."""

    name = "tokens-per-round"
    source = "paper 5, problem (1): goodput counted per round"
    guarantee = "none per second; a bound from the shortest possible round"
    complexity = "same as `dual`"
    takes = (
        PER_SECOND,
        NO_MIN_RATES,
        Condition(
            "a utility of rates per round in the range of floating-point numbers", _out_of_range
        ),
    )

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Solve the per-round problem, and convert the shares of rounds to shares of time.

        The number of rounds of each kind is kept, so long rounds take a larger share of the time.
        """
        offer_first_plan(problem, budget)
        plan, bound = fair_per_round(problem, budget)
        budget.offer(plan)
        return Outcome(plan=plan, bound=bound)


def per_round(problem: FairGoodputProblem) -> FairGoodputProblem:
    """Return a copy of the problem with rates per round and without minimum rates.

    The utility of the returned problem must be in the floating-point range.
    """
    return dataclasses.replace(problem, per="round", min_goodput=None)


def fair_per_round(problem: FairGoodputProblem, budget: Budget) -> tuple[FairGoodputPlan, float]:
    """Return the plan that results from the optimum per round, and an upper bound on the utility.

    Both refer to rates per second. Every round lasts at least T, the duration of a round without
    drafts. Rates per second are therefore at most 1 / T times feasible rates per round.
    """
    counted = per_round(problem)
    best = optimise(counted, region_of(counted), budget)
    plan = plan_of(counted, best.tokens)
    bound = best.bound(counted, plan.goodput)
    shortest = problem.round_seconds(np.zeros(problem.clients, np.int64))
    if problem.fairness == 1.0:
        bound -= float(problem.weight.sum()) * math.log(shortest)
    else:
        bound *= shortest ** (problem.fairness - 1.0)
    return declared(problem, in_time(problem, plan.schedule)), bound
